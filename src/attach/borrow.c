#include "attach/borrow.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define SEARCHED 65536 // bytes of a stack that are searched for the frame of a signal

// Results with which the kernel marks calls that it will restart.
enum { RESTART_SYS = 512, RESTART_NO_INTERRUPT, RESTART_NO_HANDLER, RESTART_BLOCK = 516 };

static const struct borrow_object *find_object(const struct borrow_map *map, uint64_t pc) {
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (map->objects[middle].end <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low < map->count && map->objects[low].start <= pc ? &map->objects[low] : NULL;
}

// ---- calls of the kernel -----------------------------------------------------------------------

// Calls that wait, and that neither an allocator nor the dynamic linker makes.
static bool is_waiting_call(long long call) {
    static const short calls[] = {
        SYS_epoll_wait,     SYS_epoll_pwait,     SYS_epoll_pwait2, SYS_poll,
        SYS_ppoll,          SYS_select,          SYS_pselect6,     SYS_accept,
        SYS_accept4,        SYS_recvfrom,        SYS_recvmsg,      SYS_recvmmsg,
        SYS_sendto,         SYS_sendmsg,         SYS_sendmmsg,     SYS_connect,
        SYS_write,          SYS_writev,          SYS_readv,        SYS_nanosleep,
        SYS_wait4,          SYS_waitid,          SYS_pause,        SYS_rt_sigsuspend,
        SYS_semop,          SYS_semtimedop,      SYS_msgrcv,       SYS_msgsnd,
        SYS_io_getevents,   SYS_fsync,           SYS_fdatasync,    SYS_flock,
        SYS_read,           SYS_io_pgetevents,   SYS_sendfile,     SYS_clock_nanosleep,
        SYS_io_uring_enter, SYS_rt_sigtimedwait,
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (call == calls[i])
            return true;
    return false;
}

// The locks of malloc are waited for by FUTEX_WAIT from within libc; condition variables, joins and
// semaphores by FUTEX_WAIT_BITSET.
static bool is_waiting_futex(const struct user_regs_struct *now,
                             const struct borrow_object *object) {
    int operation = (int)now->rsi & FUTEX_CMD_MASK;
    return operation == FUTEX_WAIT_BITSET ||
           (operation == FUTEX_WAIT && !object->is_libc && !object->is_unsafe);
}

// A call that is not over begins again. One that counts the time it has left goes on counting.
static void start_again(struct user_regs_struct *registers) {
    long long result = -(long long)registers->rax;
    if (result == RESTART_SYS || result == RESTART_NO_INTERRUPT || result == RESTART_NO_HANDLER) {
        registers->rax = registers->orig_rax;
        registers->rip -= 2;
    } else if (result == RESTART_BLOCK) {
        registers->rax = SYS_restart_syscall;
        registers->rip -= 2;
    }
}

// ---- one thread --------------------------------------------------------------------------------

// Whether a signal handler runs: what it has interrupted may be malloc.
static bool is_in_handler(const struct borrow_map *map, int pid, uint64_t stack) {
    static uint64_t words[SEARCHED / sizeof(uint64_t)];
    struct iovec to = {words, sizeof words}, from = {(void *)(stack & ~7ull), sizeof words};
    ssize_t size = process_vm_readv(pid, &to, 1, &from, 1, 0);
    for (size_t i = 0; size > 0 && i < (size_t)size / sizeof *words; i++)
        for (size_t j = 0; j < map->restorer_count; j++)
            if (words[i] == map->restorers[j])
                return true;
    return size <= 0;
}

static bool has_thread_block(int pid, uint64_t pointer) {
    uint64_t words[3] = {0};
    struct iovec to = {words, sizeof words}, from = {(void *)pointer, sizeof words};
    return pointer && process_vm_readv(pid, &to, 1, &from, 1, 0) == sizeof words &&
           words[0] == pointer && words[2] == pointer;
}

static bool is_safe(const struct borrow_map *map, int pid, const struct user_regs_struct *now) {
    const struct borrow_object *object = find_object(map, now->rip);
    if (!object || object->is_loader)
        return false;
    bool is_calling = (long long)now->orig_rax >= 0;
    bool is_fine = !is_calling                  ? !object->is_unsafe
                   : now->orig_rax == SYS_futex ? is_waiting_futex(now, object)
                                                : is_waiting_call((long long)now->orig_rax);
    return is_fine && has_thread_block(pid, now->fs_base) && !is_in_handler(map, pid, now->rsp);
}

static bool take(const struct freeze_thread *thread, const struct user_regs_struct *now,
                 struct borrowed *borrowed) {
    *borrowed = (struct borrowed){.tid = thread->tid, .registers = *now};
    if (ptrace(PTRACE_GETSIGMASK, thread->tid, sizeof borrowed->signals, &borrowed->signals) < 0)
        return false;
    if ((long long)now->orig_rax >= 0)
        start_again(&borrowed->registers);
    return true;
}

bool borrow_choose(const struct borrow_map *map, int pid, const struct freeze *freeze,
                   struct borrowed *borrowed) {
    // First those that wait, and among them those that have no time to lose.
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < freeze->count; i++) {
            const struct freeze_thread *thread = &freeze->threads[i];
            struct user_regs_struct now;
            if (!thread->stopped || thread->signal ||
                ptrace(PTRACE_GETREGS, thread->tid, NULL, &now) < 0)
                continue;
            bool is_waiting = (long long)now.orig_rax >= 0 && (long long)now.rax < 0;
            if (is_waiting == (round == 0) && is_safe(map, pid, &now) &&
                take(thread, &now, borrowed))
                return true;
        }
    }
    return false;
}
