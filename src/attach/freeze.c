#include "attach/freeze.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/vector.h"

#define PATIENCE 10000000000ull // nanoseconds for all threads to stop
#define PAUSE    20000

// Waits for a thread to stop. The end of a process stays for others to see; the end of one of its
// threads nobody else may see, and nobody else can.
static bool wait_for_stop(struct freeze_thread *thread, uint64_t until) {
    int ends = thread->is_first ? 0 : WEXITED;
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)thread->tid, &info, WSTOPPED | WNOHANG | ends | __WALL) < 0)
            return false;
        if (info.si_pid == thread->tid) {
            if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
                return false;
            // A stop for a signal that is being delivered has nothing above the signal's number.
            if (info.si_code == CLD_TRAPPED && info.si_status >> 8 == 0)
                thread->signal = info.si_status & 0xff;
            return thread->stopped = true;
        }
        if (clock_nanoseconds() > until)
            return false;
        struct timespec pause = {.tv_nsec = PAUSE};
        nanosleep(&pause, NULL);
    }
}

// ---- calls that end with EINTR -----------------------------------------------------------------

// Calls that a stop ends with EINTR, and that have done nothing by then. Some do so only for
// sockets with a timeout.
static bool may_start_again(unsigned long long call) {
    static const short calls[] = {
        SYS_epoll_wait,   SYS_epoll_pwait,   SYS_epoll_pwait2,
        SYS_semop,        SYS_semtimedop,    SYS_rt_sigtimedwait,
        SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter,
        SYS_read,         SYS_readv,         SYS_write,
        SYS_writev,       SYS_recvfrom,      SYS_recvmsg,
        SYS_recvmmsg,     SYS_sendto,        SYS_sendmsg,
        SYS_sendmmsg,     SYS_accept,        SYS_accept4,
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (call == (unsigned long long)calls[i])
            return true;
    return false;
}

// Whether a signal waits that the thread does not block. It reads as true if that is not known.
static bool has_signal(int pid, int tid) {
    char path[64], line[256];
    unsigned long long set, pending = 0, blocked = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return true;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "SigPnd: %llx", &set) == 1 || sscanf(line, "ShdPnd: %llx", &set) == 1)
            pending |= set;
        if (sscanf(line, "SigBlk: %llx", &set) == 1)
            blocked = set;
    }
    fclose(file);
    return pending & ~blocked;
}

// The instruction that calls the kernel is two bytes long.
static void start_call_again(int pid, const struct freeze_thread *thread,
                             struct user_regs_struct *user) {
    if ((long long)user->orig_rax < 0 || (long long)user->rax != -EINTR || thread->signal ||
        !may_start_again(user->orig_rax) || has_signal(pid, thread->tid))
        return;
    struct user_regs_struct again = *user;
    again.rax = user->orig_rax;
    again.rip -= 2;
    ptrace(PTRACE_SETREGS, thread->tid, NULL, &again);
}

// ---- threads -----------------------------------------------------------------------------------

static void read_registers(int pid, struct freeze_thread *thread) {
    struct user_regs_struct user;
    if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &user) < 0)
        return;
    start_call_again(pid, thread, &user);
    const uint64_t all[FREEZE_REGISTERS] = {
        user.rax, user.rbx, user.rcx, user.rdx, user.rsi, user.rdi, user.rbp, user.rsp,
        user.r8,  user.r9,  user.r10, user.r11, user.r12, user.r13, user.r14, user.r15};
    memcpy(thread->registers, all, sizeof all);
    thread->stack_pointer = user.rsp;
    thread->thread_pointer = user.fs_base;
}

static bool is_known(const struct freeze *freeze, int tid) {
    for (size_t i = 0; i < freeze->count; i++)
        if (freeze->threads[i].tid == tid)
            return true;
    return false;
}

// Seizes threads that are not known yet: how many. -1 with errno: not permitted.
static int seize_new(struct freeze *freeze, int pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    if (!tasks)
        return -1;
    int count = 0;
    struct dirent *entry;
    while (count >= 0 && (entry = readdir(tasks))) {
        int tid = atoi(entry->d_name);
        if (tid <= 0 || is_known(freeze, tid))
            continue;
        if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) {
            // It may have ended by now.
            if (errno != ESRCH)
                count = -1;
            continue;
        }
        *vector_push(freeze->threads, freeze->count) =
            (struct freeze_thread){.tid = tid, .is_first = tid == pid};
        count++;
    }
    int error = errno;
    closedir(tasks);
    errno = error;
    return count;
}

// Seizing does not stop a thread, so all are stopped at nearly the same time.
static void interrupt_new(struct freeze *freeze, size_t from) {
    if (!freeze->began)
        freeze->began = clock_nanoseconds();
    for (size_t i = from; i < freeze->count; i++)
        ptrace(PTRACE_INTERRUPT, freeze->threads[i].tid, NULL, NULL);
}

static void run_first(struct freeze *freeze) {
    struct sched_param before = {0}, first = {.sched_priority = 1};
    freeze->policy = sched_getscheduler(0);
    sched_getparam(0, &before);
    freeze->priority = before.sched_priority;
    sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first);
}

static void run_as_before(const struct freeze *freeze) {
    sched_setscheduler(0, freeze->policy, &(struct sched_param){freeze->priority});
}

bool freeze_begin(struct freeze *freeze, int pid) {
    *freeze = (struct freeze){0};
    run_first(freeze);
    uint64_t until = clock_nanoseconds() + PATIENCE;
    int count;
    // A thread that still runs may make others.
    while ((count = seize_new(freeze, pid)) > 0) {
        size_t from = freeze->count - (size_t)count;
        interrupt_new(freeze, from);
        for (size_t i = from; i < freeze->count; i++)
            if (wait_for_stop(&freeze->threads[i], until))
                read_registers(pid, &freeze->threads[i]);
    }
    if (count == 0 && freeze->count)
        return true;
    int error = errno;
    freeze_end(freeze);
    errno = error ? error : ESRCH;
    return false;
}

uint64_t freeze_end(struct freeze *freeze) {
    for (size_t i = 0; i < freeze->count; i++) {
        struct freeze_thread *thread = &freeze->threads[i];
        if (!thread->stopped)
            wait_for_stop(thread, clock_nanoseconds() + PATIENCE);
        ptrace(PTRACE_DETACH, thread->tid, NULL, (void *)(long)thread->signal);
    }
    free(freeze->threads);
    uint64_t pause = freeze->began ? clock_nanoseconds() - freeze->began : 0;
    run_as_before(freeze); // and no time is measured after that
    *freeze = (struct freeze){0};
    return pause;
}
