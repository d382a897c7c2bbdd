#include "execute.h"

#include <asm/prctl.h>
#include <err.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>

#define IN  ((struct cpu_state *)(uintptr_t)CONTEXT_IN)
#define OUT ((struct cpu_state *)(uintptr_t)CONTEXT_OUT)

int enter(void);
void enter_exit0(void);
void enter_exit1(void);
void enter_exit2(void);
void enter_exit3(void);
void enter_faulted(void);

#define TRAP_PAGE_FAULT 14

static unsigned xsave_size;
static uint64_t own_fs_base;
static bool bases_changed;     // fs and gs base belong to the form
static bool selectors_changed; // selectors may, too

static long set_or_get_base(int code, void *value) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_arch_prctl), "D"((long)code), "S"(value)
                     : "rcx", "r11", "memory");
    return result;
}

static void use_form_bases(const struct form *form) {
    bases_changed = form->limits & (LIMIT_FS_BASE | LIMIT_GS_BASE);
    selectors_changed = form->limits & LIMIT_SEGMENT_LOAD;
    if (!bases_changed)
        return;
    set_or_get_base(ARCH_SET_GS, (void *)IN->gs_base);
    set_or_get_base(ARCH_SET_FS, (void *)IN->fs_base);
}

static void use_own_bases(void) {
    if (!bases_changed)
        return;
    set_or_get_base(ARCH_GET_FS, &OUT->fs_base);
    set_or_get_base(ARCH_GET_GS, &OUT->gs_base);
    if (selectors_changed) {
        __asm__ volatile("mov %%ds, %0" : "=m"(OUT->selector[0]));
        __asm__ volatile("mov %%es, %0" : "=m"(OUT->selector[1]));
        __asm__ volatile("mov %%fs, %0" : "=m"(OUT->selector[2]));
        __asm__ volatile("mov %%gs, %0" : "=m"(OUT->selector[3]));
        __asm__ volatile("mov %0, %%ds; mov %0, %%es; mov %0, %%fs; mov %0, %%gs" ::"r"(0));
    }
    set_or_get_base(ARCH_SET_GS, 0);
    set_or_get_base(ARCH_SET_FS, (void *)own_fs_base);
    bases_changed = false;
}

// The registers of a signal context in the order of instruction encoding.
static const int context_gpr[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                    REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                    REG_R12, REG_R13, REG_R14, REG_R15};

static void handle(int signal, siginfo_t *info, void *argument) {
    ucontext_t *context = argument;
    greg_t *gregs = context->uc_mcontext.gregs;
    struct cpu_state *out = OUT;
    // The kernel hands AC on to handlers.
    __asm__ volatile("pushf; andl $~0x40000, (%%rsp); popf" ::: "memory", "cc");
    use_own_bases();
    for (int i = 0; i < 16; i++)
        out->gpr[i] = gregs[context_gpr[i]];
    out->flags = gregs[REG_EFL];
    out->rip = gregs[REG_RIP];
    out->signal = signal;
    out->signal_code = info->si_code;
    out->signal_address = (uint64_t)info->si_addr;
    out->trap_number = gregs[REG_TRAPNO];
    out->trap_error = gregs[REG_ERR];
    // Otherwise it is left over from an earlier page fault.
    out->trap_address = out->trap_number == TRAP_PAGE_FAULT ? gregs[REG_CR2] : 0;
    memcpy(out->xsave, context->uc_mcontext.fpregs, xsave_size);
    gregs[REG_RIP] = (greg_t)enter_faulted;
    gregs[REG_RSP] = *(greg_t *)CONTEXT_SAVED_RSP;
    gregs[REG_EFL] = 0x202;
}

void execute_init(void) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS};
    void (*const exits[EXIT_COUNT])(void) = {enter_exit0, enter_exit1, enter_exit2, enter_exit3};
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    stack_t stack = {.ss_size = 1 << 16};
    stack.ss_sp =
        mmap(NULL, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL))
        err(2, "cannot set up the signal stack");
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
    set_or_get_base(ARCH_GET_FS, &own_fs_base);
    memcpy((void *)CONTEXT_EXITS, exits, sizeof exits);
    *(uint64_t *)CONTEXT_XSAVE_MASK = state_xsave_layout.mask;
    xsave_size = XSAVE_HEADER + 64;
    for (int i = PART_AVX; i < PARTS; i++) {
        uint32_t end = state_xsave_layout.offset[i] + state_xsave_layout.size[i];
        xsave_size = end > xsave_size ? end : xsave_size;
    }
}

void execute(const struct form *form, uint64_t entry) {
    memset(OUT, 0, STATE_XSAVE + xsave_size);
    *(uint64_t *)CONTEXT_ENTRY = entry;
    *(uint64_t *)CONTEXT_MARK = 0;
    use_form_bases(form);
    enter();
    use_own_bases();
    OUT->mark = *(uint64_t *)CONTEXT_MARK;
}
