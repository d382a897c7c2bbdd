// Stacks of many shapes, walked by the unwinder and by libgcc. Built several times, with different
// compiler options and linked in different ways.

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "unit.h"
#include "unwind/unwind.h"
#include "unwind_compare.h"

#define NOINLINE __attribute__((noinline, noclone))

static volatile int sink;
static void (*volatile leaf)(void) = compare_here;

static void expect_walks(long walks) {
    struct compare_result result = compare_result();
    CHECK_EQ(result.differences, 0);
    CHECK_EQ(result.walks, walks);
}

static NOINLINE int plain(int depth) {
    if (depth > 0)
        return plain(depth - 1) + sink;
    leaf();
    return sink;
}

static NOINLINE long many_arguments(long a, long b, long c, long d, long e, long f, long g,
                                    long h) {
    leaf();
    return a + b * c + d * e + f * g + h + sink;
}

// Keeps so much alive across the calls that it needs all registers that a callee must save.
long all_registers(long *values);

NOINLINE long all_registers(long *values) {
    long a = values[0], b = values[1], c = values[2], d = values[3], e = values[4], f = values[5];
    for (int i = 0; i < 3; i++) {
        leaf();
        a += b ^ i, b += c, c += d, d += e, e += f, f += a;
    }
    return a ^ b ^ c ^ d ^ e ^ f;
}

static NOINLINE int dynamic_frame(size_t size) {
    char *space = __builtin_alloca(size);
    memset(space, 1, size);
    leaf();
    return space[size / 2] + sink;
}

static NOINLINE int realigned_frame(int value) {
    _Alignas(64) volatile char space[128];
    space[value] = 1;
    leaf();
    return space[value] + sink;
}

// Both at once make the compiler address the frame by rbx or r10 and describe it by expressions.
static NOINLINE int realigned_dynamic_frame(size_t size, long a, long b, long c, long d, long e,
                                            long f, long g) {
    _Alignas(64) volatile char aligned[64];
    char *space = __builtin_alloca(size);
    memset(space, 1, size);
    aligned[3] = (char)g;
    leaf();
    plain(2);
    return space[size / 2] + aligned[3] + (int)(a + b + c + d + e + f);
}

// One function for each register that a callee must save: its frame hangs on that register alone,
// so that a walk must restore it in the frames below. Written by hand, because compilers choose so
// rarely.
#define HANGING_FRAME(reg)                                                                         \
    void hangs_on_##reg(long *values);                                                             \
    __asm__(".text\n"                                                                              \
            ".type hangs_on_" #reg ", @function\n"                                                 \
            "hangs_on_" #reg ":\n"                                                                 \
            ".cfi_startproc\n"                                                                     \
            "push %" #reg "\n"                                                                     \
            ".cfi_adjust_cfa_offset 8\n"                                                           \
            ".cfi_rel_offset " #reg ", 0\n"                                                        \
            "mov %rsp, %" #reg "\n"                                                                \
            ".cfi_def_cfa_register " #reg "\n"                                                     \
            "sub $0x120, %rsp\n"                                                                   \
            "and $-64, %rsp\n"                                                                     \
            "call all_registers\n"                                                                 \
            "mov %" #reg ", %rsp\n"                                                                \
            ".cfi_def_cfa_register rsp\n"                                                          \
            "pop %" #reg "\n"                                                                      \
            ".cfi_adjust_cfa_offset -8\n"                                                          \
            "ret\n"                                                                                \
            ".cfi_endproc\n")
HANGING_FRAME(rbx);
HANGING_FRAME(rbp);
HANGING_FRAME(r12);
HANGING_FRAME(r13);
HANGING_FRAME(r14);
HANGING_FRAME(r15);

TEST(plain_calls) {
    plain(0);
    plain(5);
    many_arguments(1, 2, 3, 4, 5, 6, 7, 8);
    all_registers((long[]){1, 2, 3, 4, 5, 6});
    expect_walks(6);
}

TEST(dynamic_and_realigned_frames) {
    dynamic_frame(100);
    dynamic_frame(10000);
    realigned_frame(7);
    realigned_dynamic_frame(333, 1, 2, 3, 4, 5, 6, 7);
    expect_walks(5);
}

TEST(frames_on_every_saved_register) {
    long values[] = {1, 2, 3, 4, 5, 6};
    hangs_on_rbx(values);
    hangs_on_rbp(values);
    hangs_on_r12(values);
    hangs_on_r13(values);
    hangs_on_r14(values);
    hangs_on_r15(values);
    expect_walks(18);
}

TEST(deep_recursion) {
    plain(10000);
    struct compare_result result = compare_result();
    CHECK_EQ(result.differences, 0);
    CHECK(result.deepest > 10000);
}

static int compare_numbers(const void *a, const void *b) {
    leaf();
    return *(const int *)a - *(const int *)b;
}

static int visit_module(struct dl_phdr_info *info, size_t size, void *context) {
    leaf();
    return 0;
}

TEST(callbacks_from_libraries) {
    int numbers[] = {3, 1, 2, 5, 4}, key = 4;
    qsort(numbers, 5, sizeof(int), compare_numbers);
    CHECK_EQ(numbers[4], 5);
    CHECK(bsearch(&key, numbers, 5, sizeof(int), compare_numbers));
    dl_iterate_phdr(visit_module, NULL);
    struct compare_result result = compare_result();
    CHECK_EQ(result.differences, 0);
    CHECK(result.walks >= 8);
}

static jmp_buf escape;

static NOINLINE __attribute__((noreturn)) void never_returns(void) {
    leaf();
    longjmp(escape, 1);
}

// The call is the last instruction: its return address lies in the next function, if anywhere.
static NOINLINE void ends_with_a_call(int value) {
    sink = value;
    never_returns();
}

TEST(call_as_last_instruction) {
    if (setjmp(escape) == 0)
        ends_with_a_call(1);
    expect_walks(1);
}

static void *thread_main(void *argument) {
    plain(3);
    realigned_dynamic_frame(55, 1, 2, 3, 4, 5, 6, 7);
    return NULL;
}

TEST(threads) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thread_main, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    expect_walks(12);
}

// ---- signals ----

static void install(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    CHECK_EQ(sigaction(signal, &action, NULL), 0);
}

static void on_signal(int signal, siginfo_t *info, void *context) {
    plain(1);
    compare_interrupted(context);
}

static void on_outer_signal(int signal, siginfo_t *info, void *context) {
    plain(1);
    raise(SIGUSR2);
}

static NOINLINE int raise_signal(int signal) {
    raise(signal);
    return sink;
}

TEST(signal_handlers) {
    install(SIGUSR1, on_signal, 0);
    raise_signal(SIGUSR1);
    expect_walks(2);
}

TEST(nested_signal_handlers) {
    install(SIGUSR1, on_outer_signal, 0);
    install(SIGUSR2, on_signal, 0);
    raise_signal(SIGUSR1);
    expect_walks(3);
}

TEST(alternate_signal_stack) {
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack}, none = {.ss_flags = SS_DISABLE};
    CHECK_EQ(sigaltstack(&alternate, NULL), 0);
    install(SIGUSR1, on_signal, SA_ONSTACK);
    raise_signal(SIGUSR1);
    sigaltstack(&none, NULL);
    expect_walks(2);
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
    plain(1);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] -= 2;
    compare_interrupted(context);
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static NOINLINE int leaf_with_fault(int value) {
    __asm__ volatile("ud2");
    return value + sink;
}

TEST(fault_in_a_leaf) {
    install(SIGILL, on_fault, 0);
    sink = leaf_with_fault(3);
    sink = 0;
    expect_walks(2);
}

// ---- every single instruction ----

static volatile sig_atomic_t step_stop;
static long steps;

static void on_step(int signal, siginfo_t *info, void *context) {
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    if (step_stop) {
        *flags &= ~0x100L;
        return;
    }
    *flags |= 0x100;
    steps++;
    compare_interrupted(context);
    compare_here();
}

static NOINLINE void stepped_work(void) {
    char text[100];
    int numbers[] = {3, 1, 2};
    int (*volatile format)(char *, size_t, const char *, ...) = snprintf;
    void (*volatile quiet)(void) = leaf;
    leaf = (void (*)(void))getppid;
    plain(2);
    dynamic_frame(40);
    realigned_frame(5);
    realigned_dynamic_frame(20, 1, 2, 3, 4, 5, 6, 7);
    qsort(numbers, 3, sizeof(int), compare_numbers);
    format(text, sizeof text, "%d %s %g", 5, "text", 1.5);
    free(strdup(text));
    sink = (int)strtol("123", NULL, 0) * 0;
    leaf = quiet;
}

TEST(every_instruction) {
    install(SIGTRAP, on_step, 0);
    step_stop = 0;
    raise(SIGTRAP);
    stepped_work();
    step_stop = 1;
    struct compare_result result = compare_result();
    NOTE("compared the walks at %ld instructions, libgcc gave up at %ld", steps, result.beyond);
    CHECK(steps > 2000);
    CHECK_EQ(result.walks, 2 * steps);
    CHECK(result.beyond < 40);
    CHECK_EQ(result.differences, 0);
}

// A profiler has a copy of the stack from the stack pointer on. What lies below it has been popped,
// although the unwind information of epilogues goes on naming it.
static long copied_differences;

static void on_copied_step(int signal, siginfo_t *info, void *context) {
    enum { MOST = 256 };
    static uint64_t whole[MOST], copied[MOST];
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    if (step_stop) {
        *flags &= ~0x100L;
        return;
    }
    *flags |= 0x100;
    steps++;
    int end, copied_end;
    size_t count = walk_interrupted(context, whole, MOST, &end);
    if (walk_copied(context, copied, MOST, &copied_end) != count || copied_end != end ||
        memcmp(whole, copied, count * sizeof *whole) != 0)
        copied_differences++;
}

TEST(every_instruction_from_a_copy) {
    install(SIGTRAP, on_copied_step, 0);
    step_stop = steps = copied_differences = 0;
    raise(SIGTRAP);
    stepped_work();
    step_stop = 1;
    NOTE("compared the walks at %ld instructions", steps);
    CHECK(steps > 2000);
    CHECK_EQ(copied_differences, 0);
}

// ---- coroutines ----

static ucontext_t coroutine, back;

static void coroutine_main(void) {
    plain(2);
}

TEST(coroutine_stack) {
    static char stack[65536];
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = sizeof stack;
    coroutine.uc_link = &back;
    makecontext(&coroutine, coroutine_main, 0);
    swapcontext(&back, &coroutine);
    expect_walks(1);
}

// ---- code without unwind information: libgcc gives up, so these say what they expect ----

// They call their first argument with the second one. keeps_frame has a frame pointer, loses_frame
// uses rbp for something else, clears_frame sets it to 0; no_cfi_return is a return path from
// signals as some libcs have it.
typedef void assembly(void *callee, void *argument);
assembly keeps_frame, loses_frame, clears_frame;
void no_cfi_return(void);
__asm__(".text\n"
        ".balign 64\n"
        "keeps_frame: push %rbp\n mov %rsp, %rbp\n"
        "mov %rdi, %rax\n mov %rsi, %rdi\n call *%rax\n pop %rbp\n ret\n"
        ".balign 64\n"
        "loses_frame: push %rbp\n mov $0x1234, %ebp\n"
        "mov %rdi, %rax\n mov %rsi, %rdi\n call *%rax\n pop %rbp\n ret\n"
        ".balign 64\n"
        "clears_frame: push %rbp\n xor %ebp, %ebp\n"
        "mov %rdi, %rax\n mov %rsi, %rdi\n call *%rax\n pop %rbp\n ret\n"
        ".balign 64\n"
        "no_cfi_return: mov $15, %rax\n syscall\n"
        ".balign 64\n");

static uint64_t walked[64];
static size_t walked_count;
static int walked_end;

static void on_walk(int signal, siginfo_t *info, void *context) {
    walked_count = walk_interrupted(context, walked, 64, &walked_end);
}

static void walk_now(void) {
    raise(SIGUSR1);
    sink = 0;
}

static bool was_walked(const void *function, size_t size) {
    for (size_t i = 0; i < walked_count; i++)
        if (walked[i] - (uint64_t)function < size)
            return true;
    return false;
}

static NOINLINE int calls_assembly(assembly *callee, void *first, void *second) {
    callee(first, second);
    return sink;
}

TEST(frame_pointer_as_fallback) {
    install(SIGUSR1, on_walk, 0);
    long guessed = walk_guessed();
    calls_assembly(keeps_frame, walk_now, NULL);
    CHECK_EQ(walked_end, UNWIND_END_BOTTOM);
    CHECK(was_walked(keeps_frame, 64));
    CHECK(was_walked(calls_assembly, 200));
    CHECK_EQ(walk_guessed() - guessed, 1);
}

TEST(no_frame_pointer_either) {
    calls_assembly(loses_frame, walk_now, NULL);
    CHECK_EQ(walked_end, UNWIND_END_NO_RULE);
    CHECK(walked[walked_count - 1] - (uint64_t)loses_frame < 64);
}

// 0 in rbp says that the stack begins only where a chain of frame pointers has led to it.
TEST(frame_pointer_of_zero) {
    calls_assembly(clears_frame, walk_now, NULL);
    CHECK_EQ(walked_end, UNWIND_END_NO_RULE);
    CHECK(walked[walked_count - 1] - (uint64_t)clears_frame < 64);
    calls_assembly(clears_frame, keeps_frame, walk_now);
    CHECK_EQ(walked_end, UNWIND_END_BOTTOM);
    CHECK(walked[walked_count - 1] - (uint64_t)clears_frame < 64);
}

TEST(code_outside_all_modules) {
    void *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    memcpy(code, (const void *)keeps_frame, 64);
    calls_assembly(code, walk_now, NULL);
    CHECK_EQ(walked_end, UNWIND_END_BOTTOM);
    CHECK(was_walked(code, 64));
    CHECK(was_walked(calls_assembly, 200));
    memcpy(code, (const void *)loses_frame, 64);
    calls_assembly(code, walk_now, NULL);
    CHECK_EQ(walked_end, UNWIND_END_NO_MODULE);
    munmap(code, 4096);
}

// As in JIT compilers: code outside all modules calls a helper that has no unwind information. The
// frame before, in compiled code with a frame pointer, makes it believable.
__attribute__((optimize("no-omit-frame-pointer"))) static NOINLINE int
calls_outside_code(assembly *code) {
    code(keeps_frame, walk_now);
    return sink;
}

TEST(outside_code_calls_a_helper) {
    void *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    memcpy(code, (const void *)keeps_frame, 64);
    calls_outside_code(code);
    CHECK_EQ(walked_end, UNWIND_END_BOTTOM);
    CHECK(was_walked(keeps_frame, 64));
    CHECK(was_walked(code, 64));
    CHECK(was_walked(calls_outside_code, 200));
    munmap(code, 4096);
}

static NOINLINE int call_nothing(void) {
    void (*volatile nothing)(void) = NULL;
    nothing();
    return sink;
}

static void on_wild_call(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    walked_count = walk_interrupted(context, walked, 64, &walked_end);
    registers[REG_RIP] = *(greg_t *)registers[REG_RSP];
    registers[REG_RSP] += 8;
}

TEST(call_of_a_null_pointer) {
    install(SIGSEGV, on_wild_call, 0);
    call_nothing();
    CHECK_EQ(walked_end, UNWIND_END_BOTTOM);
    CHECK_EQ(walked[0], 0);
    CHECK(walked[1] - (uint64_t)call_nothing < 100);
}

static void on_walk_inside(int signal, siginfo_t *info, void *context) {
    raise(SIGUSR2);
    sink = 0;
}

TEST(signal_return_without_unwind_information) {
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        unsigned long mask;
    } action = {on_walk_inside, SA_SIGINFO | 0x04000000, no_cfi_return, 0};
    install(SIGUSR2, on_walk, 0);
    CHECK_EQ(syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, 8), 0);
    raise_signal(SIGUSR1);
    CHECK_EQ(walked_end, UNWIND_END_BOTTOM);
    CHECK(was_walked(no_cfi_return, 16));
    CHECK(was_walked(raise_signal, 200));
}

UNIT_MAIN()
