#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "engine/cache/block.h"
#include "engine/fatal.h"
#include "engine/layout.h"
#include "engine/enter.h"
#include "engine/process.h"
#include "engine/signal/signal.h"
#include "wire/wire.h"

enum {
    HOST_STACK = 64 * 1024,
    FLAGS_CLEAN = 0x202,
    DEFAULT_MXCSR = 0x1f80,
    SYSCALL_SIZE = 2,
    LOOKUP_SIZE = 7, // of the instruction that reads the jump table
    STUCK = 16,      // interrupted this often, an instruction waits for a page
};

// Where each general register stands in the kernel's context.
static const uint8_t context_index[GPR_COUNT] = {
    REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

static bool within(uint64_t address, const char *begin, const char *end) {
    return address >= (uint64_t)begin && address < (uint64_t)end;
}

static uint64_t *context_register(ucontext_t *context, int index) {
    return (uint64_t *)&context->uc_mcontext.gregs[index];
}

// ---- taking a thread out of the cache ----------------------------------------------------------

static void save_xstate(const ucontext_t *context) {
    const uint8_t *image = (const uint8_t *)context->uc_mcontext.fpregs;
    uint32_t size;
    memcpy(&size, image + 464 + 16, sizeof size); // sw_reserved.xstate_size
    if (size < 576)
        size = 512;
    if (size > xstate_size)
        size = xstate_size;
    memcpy(self->xstate, image, size);
    uint64_t *header = (uint64_t *)(self->xstate + 512);
    header[0] = size > 512 ? header[0] & xstate_features : 3;
    memset(header + 1, 0, 56);
}

static void read_registers(ucontext_t *context, const struct block_state *state,
                           uint64_t gpr[GPR_COUNT]) {
    for (int reg = 0; reg < GPR_COUNT; reg++)
        gpr[reg] = state->spilled & 1u << reg ? self->spill[reg]
                                              : *context_register(context, context_index[reg]);
    if (state->bias) {
        int reg = (state->bias & 0x7f) - 1;
        gpr[reg] -= state->bias & STATE_BIAS_GS ? self->gs_base : self->fs_base;
    }
}

static void take_out(ucontext_t *context, const struct block *block,
                     const struct block_state *state) {
    read_registers(context, state, self->gpr);
    self->flags = *context_register(context, REG_EFL) & ~FLAG_TRAP;
    self->pc = block->pc + state->guest;
    if (state->kind == STATE_SYSCALL_DONE)
        self->gpr[RCX] = self->pc;
    self->stepping = false;
    self->exit_reason = EXIT_SIGNAL;
    save_xstate(context);
    *context_register(context, REG_RIP) = (uint64_t)cache_leave_saved;
    *context_register(context, REG_RSP) = self->host_rsp;
    *context_register(context, REG_EFL) = FLAGS_CLEAN;
    context->uc_mcontext.fpregs->mxcsr = DEFAULT_MXCSR;
}

// Between two instructions. A system call must not be stepped over: it may never return.
static bool is_boundary(const struct block_state *state) {
    return state->kind == STATE_CLEAN || state->kind == STATE_CHECK ||
           state->kind == STATE_SYSCALL || state->kind == STATE_SYSCALL_DONE;
}

// If a pushf begins here, where the next instruction does; 0: no.
static uint64_t after_pushf(uint64_t rip) {
    enum { OPCODE_PUSHF = 0x9c, OPERAND_SIZE = 0x66, REX = 0x40 };
    const uint8_t *at = (const uint8_t *)rip;
    while (*at == OPERAND_SIZE || (*at & 0xf0) == REX)
        at++;
    return *at == OPCODE_PUSHF ? (uint64_t)at + 1 : 0;
}

// In the cache, or about to be: out at once if an instruction begins here, else step on.
static void leave_cache_soon(ucontext_t *context) {
    uint64_t rip = *context_register(context, REG_RIP);
    struct block *block = block_at(rip);
    if (block) {
        const struct block_state *state = block_state_at(block, rip);
        if (is_boundary(state) && rip == cache_start + block->code + state->host) {
            take_out(context, block, state);
            return;
        }
    }
    self->stepping = true;
    self->stepping_at = rip;
    *context_register(context, REG_EFL) |= FLAG_TRAP;
    self->pushed_at = after_pushf(rip);
}

static bool is_cache_or_entry(uint64_t rip) {
    return cache_contains(rip) || within(rip, cache_enter_begin, cache_enter_end);
}

// Another thread wants to walk this one's stack (task_with_stack). On the way into and out of the
// cache nothing can be said: it asks again.
static void tell_registers(ucontext_t *context) {
    uint64_t rip = *context_register(context, REG_RIP);
    struct block *block = block_at(rip);
    if (block) {
        const struct block_state *state = block_state_at(block, rip);
        read_registers(context, state, self->told.gpr);
        self->told.pc = block->pc + state->guest;
        self->told.exact = true;
    } else if (is_cache_or_entry(rip) || within(rip, cache_leave, cache_leave_saved)) {
        return;
    } else {
        memcpy(self->told.gpr, self->gpr, sizeof self->told.gpr);
        self->told.pc = self->pc;
        self->told.exact = false;
    }
    __atomic_store_n(&self->asked, 0, __ATOMIC_RELEASE);
}

// ---- instructions that wait for a page ---------------------------------------------------------
//
// With userfaultfd, another thread provides a page, and an instruction that needs it does not end
// before. That thread may be the one that wants this one out of the cache, and the target's signals
// must get through as well. An instruction that has been interrupted several times and has not
// ended is such a one. Who wants the thread out interrupts it again and again; after a signal of
// the target's, a timer does.

static void start_prodding(void) {
    struct itimerspec often = {.it_interval.tv_nsec = 1000000, .it_value.tv_nsec = 1000000};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = ENGINE_SIGNAL,
                             .sigev_value.sival_int = ENGINE_SIGNAL_CODE,
                             ._sigev_un._tid = self->tid};
    if (!self->is_prodded &&
        syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &self->prodding_timer) == 0) {
        self->is_prodded = true;
        syscall(SYS_timer_settime, self->prodding_timer, 0, &often, NULL);
    }
}

static void stop_prodding(void) {
    if (self->is_prodded)
        syscall(SYS_timer_delete, self->prodding_timer);
    self->is_prodded = false;
}

static bool is_own(int number, const siginfo_t *info) {
    return number == ENGINE_SIGNAL &&
           (info->si_code == ENGINE_SIGNAL_CODE ||
            (info->si_code == SI_TIMER && info->si_int == ENGINE_SIGNAL_CODE));
}

// The supervisor asks on gdb's behalf, and any thread may be hit. If others are stopped, the one
// that goes on must hear of it.
static bool is_for_debugger(int number, const siginfo_t *info) {
    if (number != WIRE_DEBUG_SIGNAL || info->si_code != WIRE_DEBUG_CODE)
        return false;
    struct task *alone = task_alone();
    if (alone && alone != self) {
        __atomic_or_fetch(&alone->pending, PENDING_DEBUG, __ATOMIC_SEQ_CST);
        task_interrupt(alone);
    } else {
        __atomic_or_fetch(&self->pending, PENDING_DEBUG, __ATOMIC_SEQ_CST);
    }
    return true;
}

static bool waits_for_page(uint64_t rip) {
    bool again = process.has_userfaultfd && self->stepping && rip == self->stepping_at;
    self->stuck = again ? self->stuck + 1 : 0;
    return self->stuck >= STUCK && block_at(rip);
}

static void interrupt(ucontext_t *context) {
    uint64_t rip = *context_register(context, REG_RIP);
    if (waits_for_page(rip)) {
        // As for a fault: of the instruction nothing has happened yet.
        struct block *block = block_at(rip);
        take_out(context, block, block_state_at(block, rip));
        self->stuck = 0;
        stop_prodding();
        return;
    }
    if (within(rip, target_syscall_begin, target_syscall_end))
        *context_register(context, REG_RIP) = (uint64_t)target_syscall_abort;
    else if (is_cache_or_entry(rip))
        leave_cache_soon(context);
}

static void stepped(ucontext_t *context) {
    uint64_t rip = *context_register(context, REG_RIP);
    *context_register(context, REG_EFL) &= ~FLAG_TRAP;
    self->stepping = false;
    self->stuck = 0;
    stop_prodding();
    if (rip == self->pushed_at) // the target must not find, and set later, the engine's trap flag
        *(uint16_t *)*context_register(context, REG_RSP) &= ~FLAG_TRAP;
    if (is_cache_or_entry(rip))
        leave_cache_soon(context);
}

// ---- faults ------------------------------------------------------------------------------------

static void engine_fault(int number, const siginfo_t *info, ucontext_t *context) {
    struct kernel_action action = {.handler = (uint64_t)SIG_DFL};
    syscall(SYS_rt_sigaction, number, &action, NULL, 8);
    fatal("internal error: signal %d at 0x%lx in the engine (address %p, target pc 0x%lx)", number,
          *context_register(context, REG_RIP), info->si_addr, self->pc);
}

static void block_until_delivery(ucontext_t *context) {
    uint64_t mask = ~SYNCHRONOUS_SIGNALS;
    memcpy(&context->uc_sigmask, &mask, sizeof mask);
}

static void describe_fault(struct queued_signal *fault, int number, const siginfo_t *info,
                           ucontext_t *context) {
    *fault = (struct queued_signal){.number = number,
                                    .info = *info,
                                    .trap = *context_register(context, REG_TRAPNO),
                                    .error = *context_register(context, REG_ERR),
                                    .fault_address = *context_register(context, REG_CR2)};
}

static void note_fault(int number, const siginfo_t *info, ucontext_t *context) {
    describe_fault(&self->fault, number, info, context);
    __atomic_or_fetch(&self->pending, PENDING_SIGNAL, __ATOMIC_SEQ_CST);
    block_until_delivery(context);
}

// Memory that a guarded function has touched: the target may have named any address.
static bool is_guarded(int number) {
    return self->guard && (number == SIGSEGV || number == SIGBUS);
}

static void leave_guarded(int number, const siginfo_t *info, ucontext_t *context, const char *to) {
    describe_fault(&self->guarded_fault, number, info, context);
    *context_register(context, REG_RIP) = (uint64_t)to;
}

static void fault_in_cache(int number, const siginfo_t *info, ucontext_t *context) {
    uint64_t rip = *context_register(context, REG_RIP);
    struct block *block = block_at(rip);
    if (!block)
        engine_fault(number, info, context);
    const struct block_state *state = block_state_at(block, rip);
    if (state->kind == STATE_LOOKUP && is_canonical(self->jump_target)) {
        // Not in the table: as if it had said so.
        *context_register(context, REG_RCX) = 0;
        *context_register(context, REG_RIP) += LOOKUP_SIZE;
        return;
    }
    take_out(context, block, state);
    if (state->kind == STATE_LOOKUP) {
        self->exit_reason = EXIT_WILD;
        return;
    }
    if (state->kind == STATE_CHECK) { // the instruction itself is to fault, or not
        self->forced = true;
        return;
    }
    note_fault(number, info, context);
    if ((uint64_t)info->si_addr == rip)
        self->fault.info.si_addr = (void *)self->pc;
}

static bool is_synchronous(int number, const siginfo_t *info) {
    return SYNCHRONOUS_SIGNALS & signal_bit(number) && info->si_code > 0;
}

// The engine's own signal has interrupted a system call made from the cache, and the target must
// not know: as if it had not been made yet.
static bool is_interrupted_syscall(uint64_t rip) {
    struct block *block = block_at(rip);
    const struct block_state *state = block ? block_state_at(block, rip) : NULL;
    return state && state->kind == STATE_SYSCALL_DONE &&
           rip == cache_start + block->code + state->host && self->gpr[RAX] == (uint64_t)-EINTR;
}

static void make_syscall_again(void) {
    self->gpr[RAX] = self->syscall;
    self->pc -= SYSCALL_SIZE;
}

void host_signal(int number, siginfo_t *info, void *argument) {
    ucontext_t *context = argument;
    uint64_t rip = *context_register(context, REG_RIP);
    if (is_synchronous(number, info)) {
        if (number == SIGTRAP && self->stepping)
            stepped(context);
        else if (within(rip, copy_guarded_begin, copy_guarded_end))
            leave_guarded(number, info, context, copy_guarded_fault);
        else if (cache_contains(rip))
            fault_in_cache(number, info, context);
        else if (is_guarded(number))
            leave_guarded(number, info, context, call_guarded_fault);
        else if (number != SIGSYS)
            engine_fault(number, info, context);
        if (number != SIGSYS || cache_contains(rip))
            return;
    }
    bool own = is_own(number, info) || is_for_debugger(number, info);
    if (!own) {
        if (SYNCHRONOUS_SIGNALS & self->sigmask & signal_bit(number)) {
            self->held_back |= signal_bit(number);
            return;
        }
        self->queued = (struct queued_signal){.number = number, .info = *info};
        __atomic_or_fetch(&self->pending, PENDING_SIGNAL, __ATOMIC_SEQ_CST);
        block_until_delivery(context);
    }
    if (own && rip == (uint64_t)target_syscall_end)
        self->spurious = true;
    if (own && __atomic_load_n(&self->asked, __ATOMIC_ACQUIRE))
        tell_registers(context);
    interrupt(context);
    if (!own && self->stepping && process.has_userfaultfd)
        start_prodding();
    if (own && is_interrupted_syscall(rip))
        make_syscall_again();
}

// ---- dispositions and masks --------------------------------------------------------------------

static long host_action(int number, const struct kernel_action *action, struct kernel_action *old) {
    return syscall(SYS_rt_sigaction, number, action, old, 8);
}

static void install_handler(int number, uint64_t extra_flags) {
    struct kernel_action action = {.handler = (uint64_t)host_signal_entry,
                                   .flags = SA_SIGINFO | SA_ONSTACK | 0x04000000 | extra_flags,
                                   .restorer = (uint64_t)host_sigreturn,
                                   .mask = ~SYNCHRONOUS_SIGNALS};
    host_action(number, &action, NULL);
}

void signal_mirror(int number) {
    const struct kernel_action *target = &self->sighand->actions[number];
    if (SYNCHRONOUS_SIGNALS & signal_bit(number))
        return;
    uint64_t kept = target->flags & (SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT);
    bool is_default = target->handler == (uint64_t)SIG_DFL;
    if (target->handler == (uint64_t)SIG_IGN || (is_default && !signal_default_is_fatal(number))) {
        struct kernel_action action = {.handler = target->handler, .flags = kept};
        host_action(number, &action, NULL);
        return;
    }
    install_handler(number, kept);
}

void signal_set_mask(uint64_t mask) {
    self->sigmask = mask & ~(signal_bit(SIGKILL) | signal_bit(SIGSTOP));
    uint64_t freed = self->held_back & ~self->sigmask;
    if (freed && !self->queued.number) {
        int number = __builtin_ctzll(freed) + 1;
        self->held_back &= ~signal_bit(number);
        self->queued = (struct queued_signal){.number = number};
        self->queued.info.si_signo = number;
        self->queued.info.si_code = SI_USER;
        self->queued.info.si_pid = getpid();
        __atomic_or_fetch(&self->pending, PENDING_SIGNAL, __ATOMIC_SEQ_CST);
    }
    signal_restore_mask();
}

void signal_restore_mask(void) {
    uint64_t mask = self->sigmask & ~SYNCHRONOUS_SIGNALS;
    // While one is under way no other may come.
    if (self->queued.number || self->fault.number)
        mask = ~SYNCHRONOUS_SIGNALS;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
}

void signal_block_all(void) {
    uint64_t mask = ~SYNCHRONOUS_SIGNALS;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
}

void signal_init_thread(void) {
    self->host_altstack =
        mmap(NULL, HOST_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (self->host_altstack == MAP_FAILED)
        fatal("out of memory for a signal stack");
    stack_t stack = {.ss_sp = self->host_altstack, .ss_size = HOST_STACK};
    syscall(SYS_sigaltstack, &stack, NULL);
}

void signal_init_process(void) {
    struct sighand *sighand = calloc(1, sizeof *sighand);
    self->sighand = sighand;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &self->sigmask, 8);
    for (int number = 1; number <= 64; number++) {
        struct kernel_action old = {0};
        host_action(number, NULL, &old);
        if (old.handler == (uint64_t)SIG_IGN)
            sighand->actions[number].handler = (uint64_t)SIG_IGN;
        if (SYNCHRONOUS_SIGNALS & signal_bit(number))
            install_handler(number, SA_RESTART);
        else
            signal_mirror(number);
    }
    signal_restore_mask();
}

void signal_prepare_exec(void) {
    for (int number = 1; number <= 64; number++) {
        if (!(SYNCHRONOUS_SIGNALS & signal_bit(number)))
            continue;
        struct kernel_action action = {.handler = (uint64_t)SIG_DFL};
        if (self->sighand->actions[number].handler == (uint64_t)SIG_IGN) {
            action.handler = (uint64_t)SIG_IGN;
            host_action(number, &action, NULL);
        }
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &self->sigmask, NULL, 8);
}
