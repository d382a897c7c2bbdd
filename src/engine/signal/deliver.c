// Making the target's signal frames, and undoing them.
#include <asm/prctl.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/hooks/hooks.h"
#include "engine/log.h"
#include "engine/memory/memory.h"
#include "engine/memory/target.h"
#include "engine/enter.h"
#include "engine/report/ending.h"
#include "engine/signal/signal.h"

enum {
    MAGIC1 = 0x46505853, // marks an extended state image
    MAGIC2 = 0x46505845, // and its end
    TRAP_DEBUG = 1,
    TRAP_BREAKPOINT = 3,
    TRAP_OVERFLOW = 4,
    USER_FLAGS = 0x50dd5, // AC RF OF DF TF SF ZF AF PF CF: what sigreturn may change
    USER_CODE = 0x33,
    USER_STACK = 0x2b,
    MXCSR_BITS = 0x2ffff, // kernel's mask on processors of today, misaligned SSE included
    DEFAULT_MXCSR = 0x1f80,
    DEFAULT_CONTROL_WORD = 0x37f,
};

// struct sigcontext of the kernel.
struct context {
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
    uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags;
    uint16_t cs, gs, fs, ss;
    uint64_t error, trap, old_mask, cr2;
    uint64_t fpstate;
    uint64_t reserved[8];
};

// struct rt_sigframe.
struct frame {
    uint64_t return_address;
    uint64_t uc_flags, uc_link;
    struct {
        uint64_t sp;
        uint32_t flags, padding;
        uint64_t size;
    } uc_stack;
    struct context context;
    uint64_t uc_mask;
    siginfo_t info;
};

struct extended {
    uint32_t magic, size;
    uint64_t features;
    uint32_t state_size, padding[7];
};

bool signal_trace;

static uint16_t *legacy_word(unsigned offset) {
    return (uint16_t *)(self->xstate + offset);
}

// A handler starts with the floating point unit as after exec.
static void reset_xstate(void) {
    memset(self->xstate, 0, 576);
    *legacy_word(0) = DEFAULT_CONTROL_WORD;
    *(uint32_t *)(self->xstate + 24) = DEFAULT_MXCSR;
}

// Parts in their initial state are not stored by XSAVE: the image must show them so.
static void write_out_initial_parts(void) {
    uint64_t *present = (uint64_t *)(self->xstate + 512);
    if (!(*present & 1)) {
        memset(self->xstate, 0, 24);
        *legacy_word(0) = DEFAULT_CONTROL_WORD;
        memset(self->xstate + 32, 0, 128);
    }
    if (!(*present & 2))
        memset(self->xstate + 160, 0, 256);
    *present |= 3; // so that a handler may change them
}

static uint64_t choose_stack(const struct kernel_action *action) {
    uint64_t sp = self->gpr[RSP] - RED_ZONE;
    if (action->flags & SA_ONSTACK && self->altstack.ss_size && !on_altstack(self->gpr[RSP]))
        sp = (uint64_t)self->altstack.ss_sp + self->altstack.ss_size;
    return sp;
}

static void fill_context(struct context *c, const struct queued_signal *queued) {
    const uint64_t *r = self->gpr;
    *c = (struct context){.r8 = r[R8],
                          .r9 = r[R9],
                          .r10 = r[R10],
                          .r11 = r[R11],
                          .r12 = r[R12],
                          .r13 = r[R13],
                          .r14 = r[R14],
                          .r15 = r[R15],
                          .rdi = r[RDI],
                          .rsi = r[RSI],
                          .rbp = r[RBP],
                          .rbx = r[RBX],
                          .rdx = r[RDX],
                          .rax = r[RAX],
                          .rcx = r[RCX],
                          .rsp = r[RSP],
                          .rip = self->pc,
                          .flags = self->flags | (self->trap_flag ? FLAG_TRAP : 0),
                          .cs = USER_CODE,
                          .ss = USER_STACK,
                          .error = queued->error,
                          .trap = queued->trap,
                          .old_mask = self->sigmask,
                          .cr2 = queued->fault_address};
}

static long write_xstate(uint64_t at) {
    write_out_initial_parts();
    struct extended extended = {.magic = MAGIC1,
                                .size = xstate_size + 4,
                                .features = xstate_features,
                                .state_size = xstate_size};
    memcpy(self->xstate + 464, &extended, sizeof extended);
    uint32_t end = MAGIC2;
    long result = target_write(at, self->xstate, xstate_size);
    return result ? result : target_write(at + xstate_size, &end, 4);
}

// *end is where the frame ends.
static long push_frame(const struct queued_signal *queued, const struct kernel_action *action,
                       uint64_t *end) {
    uint64_t sp = *end = choose_stack(action);
    uint64_t fpstate = (sp - xstate_size - 4) & ~63ul;
    uint64_t at = ((fpstate - sizeof(struct frame)) & ~15ul) - 8;
    struct frame frame = {.return_address = action->restorer,
                          .uc_flags = 7, // extended state, valid ss
                          .uc_mask = self->sigmask,
                          .info = queued->info};
    frame.uc_stack.sp = (uint64_t)self->altstack.ss_sp;
    frame.uc_stack.size = self->altstack.ss_size;
    frame.uc_stack.flags = self->altstack.ss_flags;
    fill_context(&frame.context, queued);
    frame.context.fpstate = fpstate;
    if (write_xstate(fpstate) || target_write(at, &frame, sizeof frame))
        return -EFAULT;
    if (self->altstack.ss_flags & SS_AUTODISARM)
        altstack_reset();
    self->gpr[RSP] = at;
    self->gpr[RDI] = queued->number;
    self->gpr[RSI] = at + offsetof(struct frame, info);
    self->gpr[RDX] = at + offsetof(struct frame, uc_flags);
    self->gpr[RAX] = 0;
    self->pc = action->handler;
    self->flags &= ~(uint64_t)(FLAG_DIRECTION | FLAG_RESUME);
    self->trap_flag = false;
    reset_xstate();
    return 0;
}

// A signal that came while the target was blocking it waits in the kernel again, where it counts as
// pending like any other.
static void send_back(const struct queued_signal *queued) {
    if (SYNCHRONOUS_SIGNALS & signal_bit(queued->number))
        self->held_back |= signal_bit(queued->number);
    else
        syscall(SYS_rt_tgsigqueueinfo, getpid(), self->tid, queued->number, &queued->info);
}

static void deliver(struct queued_signal *slot, bool synchronous) {
    struct queued_signal queued = *slot;
    slot->number = 0;
    int number = queued.number;
    struct kernel_action action = self->sighand->actions[number];
    bool blocked = self->sigmask & signal_bit(number);
    if (signal_trace)
        log_debug("signal %d (code %d, address %p) at pc 0x%lx: %s", number, queued.info.si_code,
                  queued.info.si_addr, self->pc,
                  action.handler > 1 ? "handled"
                  : action.handler   ? "ignored"
                                     : "default");
    if (blocked && !synchronous && !self->temporary_mask) {
        send_back(&queued);
        return;
    }
    if (synchronous && (blocked || action.handler == (uint64_t)SIG_IGN))
        signal_die(number, &queued.info);
    if (action.handler == (uint64_t)SIG_IGN)
        return;
    if (action.handler == (uint64_t)SIG_DFL) {
        if (signal_default_is_fatal(number))
            signal_die(number, &queued.info);
        return;
    }
    if (action.flags & SA_RESETHAND) {
        self->sighand->actions[number].handler = (uint64_t)SIG_DFL;
        signal_mirror(number);
    }
    uint64_t end;
    if (push_frame(&queued, &action, &end)) {
        siginfo_t info = {.si_signo = SIGSEGV, .si_code = SI_KERNEL};
        if (number == SIGSEGV || blocked)
            signal_die(SIGSEGV, &info);
        self->fault = (struct queued_signal){.number = SIGSEGV, .info = info};
        deliver(&self->fault, true);
        return;
    }
    uint64_t stack = on_altstack(self->gpr[RSP]) ? (uint64_t)self->altstack.ss_sp : 0;
    TOOL_HOOK(signal_delivered, number, self->gpr[RSP], end, stack);
    uint64_t mask = self->sigmask | action.mask;
    if (!(action.flags & SA_NODEFER))
        mask |= signal_bit(number);
    self->sigmask = mask & ~(signal_bit(SIGKILL) | signal_bit(SIGSTOP));
}

// Synchronous ones first, as the kernel does.
void signal_deliver_pending(void) {
    if (self->fault.number)
        deliver(&self->fault, true);
    if (self->queued.number)
        deliver(&self->queued, false);
    self->temporary_mask = false;
    __atomic_and_fetch(&self->pending, ~PENDING_SIGNAL, __ATOMIC_SEQ_CST);
    signal_set_mask(self->sigmask);
}

void signal_raise(int number, int code, uint64_t address, uint64_t trap, uint64_t error) {
    signal_block_all();
    self->fault = (struct queued_signal){
        .number = number, .trap = trap, .error = error, .fault_address = address};
    self->fault.info.si_signo = number;
    self->fault.info.si_code = code;
    self->fault.info.si_addr = (void *)address;
    if (trap != TRAP_DEBUG && trap != TRAP_BREAKPOINT && trap != TRAP_OVERFLOW)
        self->flags |= FLAG_RESUME; // as for every fault
    __atomic_or_fetch(&self->pending, PENDING_SIGNAL, __ATOMIC_SEQ_CST);
}

// Dies where the target would, with its registers: a core file and a debugger show the target. Its
// code is not executable natively, so that going there is a segmentation fault in itself.
__attribute__((noreturn)) static void die_in_place(void) {
    struct queued_signal none = {0};
    struct frame frame = {.uc_flags = 7};
    fill_context(&frame.context, &none);
    frame.context.fpstate = (uint64_t)self->xstate;
    syscall(SYS_arch_prctl, ARCH_SET_GS, self->gs_base);
    become_context((char *)&frame + sizeof frame.return_address);
}

void signal_die(int number, const siginfo_t *info) {
    ending_by_signal(number, info);
    signal_block_all();
    struct kernel_action action = {.handler = (uint64_t)SIG_DFL};
    syscall(SYS_rt_sigaction, number, &action, NULL, 8);
    if (number == SIGSEGV)
        die_in_place();
    uint64_t mask = ~signal_bit(number);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
    syscall(SYS_exit_group, 128 + number);
    __builtin_unreachable();
}

// ---- return ------------------------------------------------------------------------------------

static bool read_xstate(uint64_t at) {
    struct extended extended;
    uint32_t end = 0;
    if (!at) {
        reset_xstate();
        return true;
    }
    if (target_read(&extended, at + 464, sizeof extended))
        return false;
    bool is_extended = extended.magic == MAGIC1 && extended.state_size <= xstate_size &&
                       extended.state_size >= 576 &&
                       target_read(&end, at + extended.state_size, 4) == 0 && end == MAGIC2;
    reset_xstate();
    if (target_read(self->xstate, at, is_extended ? extended.state_size : 512))
        return false;
    uint64_t *header = (uint64_t *)(self->xstate + 512);
    header[0] = is_extended ? header[0] & xstate_features & extended.features : 3;
    memset(header + 1, 0, 56);
    *(uint32_t *)(self->xstate + 24) &= MXCSR_BITS;
    return true;
}

void signal_return(void) {
    struct frame frame;
    uint64_t at = self->gpr[RSP] - 8;
    siginfo_t info = {.si_signo = SIGSEGV, .si_code = SI_KERNEL};
    if (target_read(&frame, at, sizeof frame) || !read_xstate(frame.context.fpstate))
        signal_die(SIGSEGV, &info);
    const struct context *c = &frame.context;
    const uint64_t gpr[GPR_COUNT] = {c->rax, c->rcx, c->rdx, c->rbx, c->rsp, c->rbp,
                                     c->rsi, c->rdi, c->r8,  c->r9,  c->r10, c->r11,
                                     c->r12, c->r13, c->r14, c->r15};
    const stack_t stack = {.ss_sp = (void *)frame.uc_stack.sp,
                           .ss_size = frame.uc_stack.size,
                           .ss_flags = frame.uc_stack.flags};
    altstack_set(&stack, self->gpr[RSP]); // refused while on it, as by the kernel
    memcpy(self->gpr, gpr, sizeof gpr);
    self->pc = c->rip;
    self->flags = (self->flags & ~USER_FLAGS) | (c->flags & USER_FLAGS & ~FLAG_TRAP);
    self->trap_flag = c->flags & FLAG_TRAP;
    TOOL_HOOK(signal_returned, at);
    signal_set_mask(frame.uc_mask);
}
