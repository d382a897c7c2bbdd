// Synchronous memory faults must show the exact instruction and the exact registers: for each form
// of access the handler checks rip, error code, trap number, fault address and registers, and goes
// on behind the instruction.
#include "stress.h"

static unsigned char *unmapped, *readonly, *noaccess, *alternate;
static greg_t seen[NGREG];
static siginfo_t seen_info;
static char *frame; // an address in main's frame
static greg_t seen_top;
// Read and written by the assembly below.
static void *volatile resume, *volatile expected_rip, *volatile where;

static void on_fault(int s, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    memcpy(seen, c->uc_mcontext.gregs, sizeof(seen));
    seen_info = *info;
    if (seen[REG_RSP] < (greg_t)frame && seen[REG_RSP] > (greg_t)frame - 65536)
        seen_top = *(greg_t *)seen[REG_RSP];
    c->uc_mcontext.gregs[REG_RIP] = (greg_t)resume;
    c->uc_mcontext.gregs[REG_RAX] = 0x600d;
}

#define REGISTERS                                                                                  \
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",       \
        "r15", "cc", "memory", "xmm0", "xmm1"

// Runs `setup; instruction` with the operand in rdi and other registers at known values. The
// instruction stands at label 1; execution resumes at label 2 with rsp from r13.
#define FAULT(setup, instruction, operand)                                                         \
    ({                                                                                             \
        uint64_t result;                                                                           \
        where = (operand);                                                                         \
        __asm__ volatile("lea 2f(%%rip), %%rax; mov %%rax, %1\n"                                   \
                         "lea 1f(%%rip), %%rax; mov %%rax, %2\n"                                   \
                         "mov %3, %%rdi; mov $0x12345678, %%ebx; mov $1, %%eax; mov $0, %%ecx\n"   \
                         "movabs $0x1122334455667788, %%r12; mov $7, %%r15d; mov %%rsp, %%r13\n"   \
                         "sub $256, %%rsp\n" setup "\n"                                            \
                         "1: " instruction "\n"                                                    \
                         "2: mov %%r13, %%rsp; mov %%rax, %0"                                      \
                         : "=r"(result), "=m"(resume), "=m"(expected_rip)                          \
                         : "m"(where)                                                              \
                         : REGISTERS);                                                             \
        result;                                                                                    \
    })

static void expect(const char *name, int code, void *address, long error, long trap) {
    if ((void *)seen[REG_RIP] != expected_rip)
        printf("%s: rip is off by %ld\n", name, (long)(seen[REG_RIP] - (greg_t)expected_rip));
    if (seen_info.si_addr != address)
        printf("%s: address is off by %ld\n", name,
               (long)((char *)seen_info.si_addr - (char *)address));
    SAME(seen_info.si_signo, SIGSEGV);
    printf("%s: code %d err %ld trap %ld, expected %d %ld %ld\n", name, seen_info.si_code,
           (long)seen[REG_ERR], (long)seen[REG_TRAPNO], code, error, trap);
}

static void simple_accesses(void) {
    SAME(FAULT("", "mov (%%rdi), %%rax", unmapped), 0x600d);
    expect("load unmapped", SEGV_MAPERR, unmapped, 4, 14);
    SAME(seen[REG_RBX], 0x12345678);
    SAME(seen[REG_R12], 0x1122334455667788);
    SAME(seen[REG_R15], 7);
    SAME(seen[REG_RDI], unmapped);
    SAME(seen[REG_RAX], 1);
    SAME(seen[REG_RSP], seen[REG_R13] - 256);
    FAULT("", "movq $5, 8(%%rdi)", unmapped);
    expect("store unmapped", SEGV_MAPERR, unmapped + 8, 6, 14);
    FAULT("", "mov %%rbx, (%%rdi)", readonly);
    expect("store readonly", SEGV_ACCERR, readonly, 7, 14);
    FAULT("", "mov (%%rdi,%%rcx,8), %%bl", noaccess);
    expect("load noaccess", SEGV_ACCERR, noaccess, 4, 14);
    SAME(seen[REG_RBX], 0x12345678);
    FAULT("movabs $0x8000000000000000, %%rdi", "mov (%%rdi), %%rax", NULL);
    expect("load non-canonical", SI_KERNEL, NULL, 0, 13);
    FAULT("", "movdqu (%%rdi), %%xmm0", unmapped + 16);
    expect("vector load", SEGV_MAPERR, unmapped + 16, 4, 14);
    FAULT("", "lock incq (%%rdi)", noaccess);
    expect("locked increment", SEGV_ACCERR, noaccess, 6, 14);
    FAULT("", "addq $1, (%%rdi)", readonly);
    expect("read-modify-write", SEGV_ACCERR, readonly, 7, 14);
    FAULT("", "movdqa 1(%%rdi), %%xmm0", readonly);
    expect("misaligned", SI_KERNEL, NULL, 0, 13);
    FAULT("", "mov -3(%%rdi), %%rax", unmapped);
    expect("straddling", SEGV_MAPERR, unmapped, 4, 14);
    FAULT("", "mov 0, %%rax", NULL);
    expect("null absolute", SEGV_MAPERR, NULL, 4, 14);
    FAULT("", "mov %%fs:(%%rdi), %%rax", (void *)-0x100000000000);
    expect("load through fs", SEGV_MAPERR, (char *)pthread_self() - 0x100000000000, 4, 14);
    FAULT("", "hlt", NULL);
    expect("privileged", SI_KERNEL, NULL, 0, 13);
}

static void flags_and_order(void) {
    FAULT("mov $-1, %%r8d; add $1, %%r8d; mov $3, %%r9d; inc %%r15", "mov %%r9, (%%rdi)", unmapped);
    SAME(seen[REG_R8], 0);
    SAME(seen[REG_R9], 3);
    SAME(seen[REG_R15], 8);
    SAME(seen[REG_EFL] & 0x8d5, 0x1); // carry of the add; inc cleared zero, sign, overflow
    FAULT("xor %%r8d, %%r8d; stc", "mov (%%rdi), %%rax", unmapped);
    SAME(seen[REG_EFL] & 0x8c5, 0x45);
    FAULT("mov $0x7f, %%r8b; add $1, %%r8b", "mov (%%rdi), %%rax", unmapped);
    SAME(seen[REG_EFL] & 0x8d5, 0x890);
    // A conditional jump not taken and one taken stand between.
    FAULT("cmp $1, %%eax; jne 9f; cmp $2, %%eax; je 9f; mov $9, %%r8d; jmp 8f; 9: ud2; 8:",
          "mov (%%rdi), %%rax", unmapped);
    SAME(seen[REG_R8], 9);
    puts("flags seen");
}

static void strings_and_stack(void) {
    static char source[64] = "0123456789012345678901234567890123456789";
    FAULT("mov $40, %%ecx; lea -24(%%rdi), %%rdi; mov %%rsp, %%rsi; cld", "rep movsb", unmapped);
    expect("rep movsb", SEGV_MAPERR, unmapped, 6, 14);
    SAME(seen[REG_RCX], 16);
    SAME(seen[REG_RDI], unmapped);
    SAME(seen[REG_RSI], seen[REG_RSP] + 24);
    memcpy(unmapped - 40, source, 40);
    FAULT("mov $99, %%ecx; lea -40(%%rdi), %%rdi; mov $'x', %%eax; cld", "repne scasb", unmapped);
    expect("repne scasb", SEGV_MAPERR, unmapped, 4, 14);
    SAME(seen[REG_RCX], 59);
    // Stack operations that fault leave rsp where it was.
    FAULT("lea 8(%%rdi), %%rsp", "push %%rbx", readonly);
    expect("push", SEGV_ACCERR, readonly, 7, 14);
    SAME(seen[REG_RSP], readonly + 8);
    FAULT("mov %%rdi, %%rsp", "pop %%rbx", unmapped);
    expect("pop", SEGV_MAPERR, unmapped, 4, 14);
    SAME(seen[REG_RSP], unmapped);
    SAME(seen[REG_RBX], 0x12345678);
    FAULT("lea 8(%%rdi), %%rsp", "call 7f; 7:", readonly);
    expect("call", SEGV_ACCERR, readonly, 7, 14);
    SAME(seen[REG_RSP], readonly + 8);
    FAULT("mov %%rdi, %%rsp", "ret", unmapped);
    expect("ret", SEGV_MAPERR, unmapped, 4, 14);
    SAME(seen[REG_RSP], unmapped);
    FAULT("", "call *(%%rdi)", noaccess);
    expect("call through memory", SEGV_ACCERR, noaccess, 4, 14);
    SAME(seen[REG_RSP], seen[REG_R13] - 256);
    FAULT("", "jmp *8(%%rdi)", unmapped);
    expect("jump through memory", SEGV_MAPERR, unmapped + 8, 4, 14);
}

// Jumps to places that hold no code: the fault is at the destination, not at the jump.
static void bad_destinations(void) {
    FAULT("", "jmp *%%rdi", unmapped);
    expected_rip = unmapped;
    expect("jump unmapped", SEGV_MAPERR, unmapped, 0x14, 14);
    FAULT("", "call *%%rdi", readonly);
    expected_rip = readonly;
    expect("call no-execute", SEGV_ACCERR, readonly, 0x15, 14);
    SAME(seen[REG_RSP], seen[REG_R13] - 264);
    SAME(seen_top, resume);
    FAULT("push %%rdi", "ret", unmapped + 64);
    expected_rip = unmapped + 64;
    expect("return unmapped", SEGV_MAPERR, unmapped + 64, 0x14, 14);
    SAME(seen[REG_RSP], seen[REG_R13] - 256);
    FAULT("", "jmp *%%rdi", NULL);
    expected_rip = NULL;
    expect("jump null", SEGV_MAPERR, NULL, 0x14, 14);
    FAULT("", "call *%%rdi", (void *)0x1000000000000000);
    SAME(seen_info.si_code, SI_KERNEL);
    SAME(seen[REG_TRAPNO], 13);
    expected_rip = (void *)seen[REG_RIP];
    expect("call non-canonical", SI_KERNEL, NULL, 0, 13);
    // Code that runs off its page: the fault is at the first byte of the next page.
    unsigned char *code = stress_map(2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    memset(code, 0x90, PAGE);
    CHECK(munmap(code + PAGE, PAGE) == 0);
    code[PAGE - 1] = 0x48; // the first byte of an instruction that goes on over there
    FAULT("", "jmp *%%rdi", code + PAGE - 64);
    expected_rip = code + PAGE - 1;
    expect("run off the page", SEGV_MAPERR, code + PAGE, 0x14, 14);
}

int main(void) {
    char here;
    frame = &here;
    unsigned char *area = stress_map(8 * PAGE, PROT_READ | PROT_WRITE);
    readonly = area + PAGE;
    noaccess = area + 3 * PAGE;
    unmapped = area + 6 * PAGE;
    CHECK(mprotect(readonly, PAGE, PROT_READ) == 0);
    CHECK(mprotect(noaccess, PAGE, PROT_NONE) == 0);
    CHECK(munmap(unmapped, PAGE) == 0);
    CHECK(readonly[1] == 0);
    alternate = stress_map(64 * 1024, PROT_READ | PROT_WRITE);
    stack_t stack = {.ss_sp = alternate, .ss_size = 64 * 1024};
    CHECK(sigaltstack(&stack, NULL) == 0);
    stress_handle(SIGSEGV, on_fault, SA_ONSTACK);
    simple_accesses();
    flags_and_order();
    strings_and_stack();
    bad_destinations();
    return 0;
}
