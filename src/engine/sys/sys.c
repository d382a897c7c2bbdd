#include <asm/prctl.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/cache/block.h"
#include "engine/hooks/hooks.h"
#include "engine/log.h"
#include "engine/memory/memory.h"
#include "engine/memory/target.h"
#include "engine/enter.h"
#include "engine/process.h"
#include "engine/report/track_descriptors.h"
#include "engine/report/warnings.h"
#include "engine/signal/signal.h"
#include "engine/sys/names.h"
#include "engine/sys/sys.h"
#include "engine/task.h"
#include "wire/wire_target.h"

enum { SYSCALL_SIZE = 2 };

long sys_pass(long number, const struct sys_arguments *args) {
    for (;;) {
        long result = target_syscall(number, args->a);
        // The engine's own signal is not the target's to see.
        if (result == -EINTR && self->spurious && !(self->pending & PENDING_SIGNAL)) {
            self->spurious = false;
            continue;
        }
        // The kernel cannot write to pages that are watched for code.
        if (result == -EFAULT && memory_unwatch_all())
            continue;
        self->spurious = false;
        return result;
    }
}

static long sys_arch_prctl(long number, struct sys_arguments *args) {
    uint64_t value = args->a[1];
    switch (args->a[0]) {
    case ARCH_SET_FS:
        if (value >> 47)
            return -EPERM;
        self->fs_base = value;
        return 0;
    case ARCH_SET_GS:
        if (value >> 47)
            return -EPERM;
        self->gs_base = value;
        return 0;
    case ARCH_GET_FS:
        return target_write(value, &self->fs_base, 8);
    case ARCH_GET_GS:
        return target_write(value, &self->gs_base, 8);
    default:
        return sys_pass(number, args);
    }
}

static long sys_rt_sigaction(long number, struct sys_arguments *args) {
    return signal_action(args->a[0], args->a[1], args->a[2], args->a[3]);
}

static long sys_rt_sigprocmask(long number, struct sys_arguments *args) {
    return signal_procmask(args->a[0], args->a[1], args->a[2], args->a[3]);
}

static long sys_rt_sigpending(long number, struct sys_arguments *args) {
    return signal_pending(args->a[0], args->a[1]);
}

static long sys_sigaltstack(long number, struct sys_arguments *args) {
    return signal_altstack(args->a[0], args->a[1]);
}

static long sys_rt_sigreturn(long number, struct sys_arguments *args) {
    signal_return();
    return SYS_DONE;
}

// Only what is touched: the engine's tables are mostly empty address space.
static long sys_mlockall(long number, struct sys_arguments *args) {
    args->a[0] |= MCL_ONFAULT;
    return sys_pass(number, args);
}

// The supervisor stands between the target and whoever started quern.
static long sys_getppid(long number, struct sys_arguments *args) {
    long parent = sys_pass(number, args);
    return parent == wire_option_number("supervisor-pid", 0)
               ? wire_option_number("parent-pid", parent)
               : parent;
}

static long sys_userfaultfd(long number, struct sys_arguments *args) {
    process.has_userfaultfd = true;
    return sys_pass(number, args);
}

static long sys_refuse(long number, struct sys_arguments *args) {
    return -ENOSYS;
}

// Calls that concern the engine; all others pass.
static sys_handler *const handlers[512] = {
    [SYS_mmap] = sys_mmap,
    [SYS_munmap] = sys_munmap,
    [SYS_mprotect] = sys_mprotect,
    [SYS_pkey_mprotect] = sys_mprotect,
    [SYS_mremap] = sys_mremap,
    [SYS_brk] = sys_brk,
    [SYS_madvise] = sys_madvise,
    [SYS_shmat] = sys_shmat,
    [SYS_shmdt] = sys_shmdt,
    [SYS_remap_file_pages] = sys_remap_file_pages,
    [SYS_rt_sigaction] = sys_rt_sigaction,
    [SYS_rt_sigprocmask] = sys_rt_sigprocmask,
    [SYS_rt_sigpending] = sys_rt_sigpending,
    [SYS_rt_sigreturn] = sys_rt_sigreturn,
    [SYS_sigaltstack] = sys_sigaltstack,
    [SYS_clone] = sys_clone,
    [SYS_clone3] = sys_clone3,
    [SYS_fork] = sys_fork,
    [SYS_vfork] = sys_vfork,
    [SYS_exit] = sys_exit,
    [SYS_exit_group] = sys_exit_group,
    [SYS_set_tid_address] = sys_set_tid_address,
    [SYS_set_robust_list] = sys_set_robust_list,
    [SYS_wait4] = sys_wait4,
    [SYS_waitid] = sys_waitid,
    [SYS_execve] = sys_execve,
    [SYS_execveat] = sys_execveat,
    [SYS_arch_prctl] = sys_arch_prctl,
    [SYS_prctl] = sys_prctl,
    [SYS_seccomp] = sys_seccomp,
    // Restartable sequences name code addresses to the kernel; the C library does without.
    [SYS_rseq] = sys_refuse,
    [SYS_open] = sys_open,
    [SYS_openat] = sys_openat,
    [SYS_openat2] = sys_openat2,
    [SYS_creat] = sys_open,
    [SYS_truncate] = sys_truncate,
    [SYS_readlink] = sys_readlink,
    [SYS_readlinkat] = sys_readlinkat,
    [SYS_close] = sys_close,
    [SYS_close_range] = sys_close_range,
    [SYS_dup2] = sys_dup2,
    [SYS_dup3] = sys_dup3,
    [SYS_getdents64] = sys_getdents64,
    [SYS_stat] = sys_with_path,
    [SYS_access] = sys_with_path,
    [SYS_fstat] = sys_fstat,
    [SYS_newfstatat] = sys_fstat_at,
    [SYS_statx] = sys_fstat_at,
    [SYS_faccessat] = sys_with_path_at,
    [SYS_faccessat2] = sys_with_path_at,
    [SYS_getrlimit] = sys_getrlimit,
    [SYS_setrlimit] = sys_setrlimit,
    [SYS_prlimit64] = sys_prlimit64,
    [SYS_io_uring_setup] = sys_io_uring_setup,
    [SYS_io_uring_enter] = sys_io_uring_enter,
    [SYS_mlockall] = sys_mlockall,
    [SYS_getppid] = sys_getppid,
    [SYS_userfaultfd] = sys_userfaultfd,
};

// Calls during which another mask is in force: what they let in is delivered even if the thread's
// own mask blocks it.
static bool has_mask(long number) {
    return number == SYS_rt_sigsuspend || number == SYS_ppoll || number == SYS_pselect6 ||
           number == SYS_epoll_pwait || number == SYS_epoll_pwait2 ||
           number == SYS_io_uring_enter || number == SYS_io_pgetevents;
}

__attribute__((noreturn)) sys_run_function *sys_run;

void sys_init(__attribute__((noreturn)) sys_run_function *run) {
    sys_run = run;
    bool sees_all = track_descriptors_start() || process.trace_syscalls ||
                    tool->before_system_call || tool->after_system_call;
    order_init(sees_all);
    if (sees_all)
        return;
    for (long number = 0; number < 512; number++)
        if (!handlers[number] && !has_mask(number))
            cache_permit_syscall(number);
}

static void trace(long number, const struct sys_arguments *args, long result) {
    log_debug("%s(0x%lx, 0x%lx, 0x%lx, 0x%lx, 0x%lx, 0x%lx) = %ld (0x%lx)", sys_name(number),
              args->a[0], args->a[1], args->a[2], args->a[3], args->a[4], args->a[5], result,
              result);
}

void sys_handle(void) {
    uint64_t *r = self->gpr;
    long number = r[RAX];
    struct sys_arguments args = {{r[RDI], r[RSI], r[RDX], r[R10], r[R8], r[R9]}};
    struct sys_arguments given = args;
    sys_handler *handler = number >= 0 && number < 512 ? handlers[number] : NULL;
    self->temporary_mask = has_mask(number);
    if (self->dispatch.is_on && filters_dispatch(number))
        return;
    TOOL_HOOK(before_system_call, number, args.a);
    track_descriptors_before(number, args.a);
    if (!wire_is_settled())
        order_before_call(number, &args);
    long result = handler ? handler(number, &args) : sys_pass(number, &args);
    if (!(self->pending & PENDING_SIGNAL))
        self->temporary_mask = false;
    if (process.trace_syscalls)
        trace(number, &given, result);
    if (result == SYS_DONE)
        return;
    if (result == SYSCALL_NOT_BEGUN) {
        // The signal came first; the instruction is still to be executed.
        self->pc -= SYSCALL_SIZE;
        return;
    }
    if (result < 0)
        warn_about_call(number, sys_name(number), given.a, result);
    track_descriptors_after(number, given.a, &result);
    TOOL_HOOK(after_system_call, number, given.a, result);
    r[RAX] = result;
    r[RCX] = self->pc;
    r[R11] = self->flags;
    TOOL_HOOK(register_set, RAX);
    TOOL_HOOK(register_set, RCX);
    TOOL_HOOK(register_set, R11);
}
