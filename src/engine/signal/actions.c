#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/report/warnings.h"
#include "engine/fatal.h"
#include "engine/memory/target.h"
#include "engine/enter.h"
#include "engine/signal/signal.h"

enum { MINIMAL_ALTSTACK = 2048 };

bool signal_default_is_fatal(int number) {
    switch (number) {
    case SIGCHLD:
    case SIGCONT:
    case SIGSTOP:
    case SIGTSTP:
    case SIGTTIN:
    case SIGTTOU:
    case SIGURG:
    case SIGWINCH:
        return false;
    default:
        return true;
    }
}

struct sighand *sighand_copy(const struct sighand *from) {
    struct sighand *copy = malloc(sizeof *copy);
    if (!copy)
        fatal("out of memory for signal handlers");
    *copy = *from;
    return copy;
}

long signal_action(int number, uint64_t new_action, uint64_t old_action, uint64_t size) {
    struct kernel_action action;
    if (size != 8 || number < 1 || number > 64)
        return -EINVAL;
    if (new_action && (number == SIGKILL || number == SIGSTOP)) {
        warn_about_handler(number);
        return -EINVAL;
    }
    struct kernel_action *slot = &self->sighand->actions[number];
    struct kernel_action old = *slot;
    if (new_action) {
        if (target_read(&action, new_action, sizeof action))
            return -EFAULT;
        action.mask &= ~(signal_bit(SIGKILL) | signal_bit(SIGSTOP));
        // Another thread must not see half of it.
        signal_block_all();
        *slot = action;
        signal_mirror(number);
        signal_restore_mask();
    }
    if (old_action && target_write(old_action, &old, sizeof old))
        return -EFAULT;
    return 0;
}

long signal_procmask(int how, uint64_t set, uint64_t old, uint64_t size) {
    uint64_t mask = self->sigmask, wanted;
    if (size != 8)
        return -EINVAL;
    if (set) {
        if (target_read(&wanted, set, 8))
            return -EFAULT;
        if (how == SIG_BLOCK)
            wanted |= mask;
        else if (how == SIG_UNBLOCK)
            wanted = mask & ~wanted;
        else if (how != SIG_SETMASK)
            return -EINVAL;
        signal_set_mask(wanted);
    }
    if (old && target_write(old, &mask, 8))
        return -EFAULT;
    return 0;
}

long signal_pending(uint64_t set, uint64_t size) {
    uint64_t pending = 0;
    if (size > 8)
        return -EINVAL;
    syscall(SYS_rt_sigpending, &pending, 8);
    pending |= self->held_back;
    return target_write(set, &pending, size) ? -EFAULT : 0;
}

bool on_altstack(uint64_t sp) {
    const stack_t *stack = &self->altstack;
    if (stack->ss_flags & SS_AUTODISARM) // disarmed while in use
        return false;
    return sp > (uint64_t)stack->ss_sp && sp - (uint64_t)stack->ss_sp <= stack->ss_size;
}

void altstack_reset(void) {
    self->altstack = (stack_t){.ss_flags = SS_DISABLE};
}

long altstack_set(const stack_t *wanted, uint64_t sp) {
    int mode = wanted->ss_flags & ~SS_AUTODISARM;
    if (on_altstack(sp))
        return -EPERM;
    if (mode != 0 && mode != SS_ONSTACK && mode != SS_DISABLE)
        return -EINVAL;
    if (mode != SS_DISABLE && wanted->ss_size < MINIMAL_ALTSTACK)
        return -ENOMEM;
    self->altstack = *wanted;
    if (mode == SS_DISABLE) {
        self->altstack.ss_sp = NULL;
        self->altstack.ss_size = 0;
    }
    return 0;
}

long signal_altstack(uint64_t new_stack, uint64_t old_stack) {
    stack_t old = self->altstack, wanted;
    uint64_t sp = self->gpr[RSP];
    old.ss_flags &= SS_AUTODISARM;
    old.ss_flags |= !old.ss_size ? SS_DISABLE : on_altstack(sp) ? SS_ONSTACK : 0;
    if (new_stack) {
        if (target_read(&wanted, new_stack, sizeof wanted))
            return -EFAULT;
        long result = altstack_set(&wanted, sp);
        if (result)
            return result;
    }
    if (old_stack && target_write(old_stack, &old, sizeof old))
        return -EFAULT;
    return 0;
}
