// clone and clone3 used directly: a thread without the C library, a process with its own stack,
// CLONE_CHILD_CLEARTID, CLONE_PIDFD, CLONE_PARENT_SETTID, shared file tables.
#include "stress.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>

static volatile int shared_value, child_tid, parent_tid;

static int run_process(void *arg) {
    shared_value += (int)(long)arg;
    return 33;
}

// Runs without thread-local storage of its own: no C library calls but raw ones.
static int run_bare(void *arg) {
    for (int i = 0; i < 1000; i++)
        __atomic_add_fetch((int *)&shared_value, 1, __ATOMIC_SEQ_CST);
    int fd = (int)syscall(SYS_dup, 1);
    shared_value += fd > 0 ? 0 : 100000;
    syscall(SYS_exit, 0);
    return 0;
}

static void wait_cleared(void) {
    int value;
    while ((value = child_tid) != 0)
        syscall(SYS_futex, &child_tid, FUTEX_WAIT, value, NULL, NULL, 0);
}

int main(void) {
    char *stack = (char *)stress_map(64 * PAGE, PROT_READ | PROT_WRITE);
    char *top = stack + 64 * PAGE;
    int before = dup(1);
    close(before);

    pid_t pid = clone(run_process, top, SIGCHLD, (void *)5);
    SAME(stress_wait(pid), 33 << 8);
    SAME(shared_value, 0);
    pid = clone(run_process, top, CLONE_VM | SIGCHLD, (void *)5);
    SAME(stress_wait(pid), 33 << 8);
    SAME(shared_value, 5);
    pid = clone(run_process, top, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)6);
    SAME(shared_value, 11);
    SAME(stress_wait(pid), 33 << 8);
    puts("processes");

    shared_value = 0;
    for (int i = 0; i < 20; i++) {
        child_tid = -1;
        unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                              CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID |
                              CLONE_CHILD_SETTID;
        int tid = clone(run_bare, top, (int)flags, NULL, &parent_tid, NULL, &child_tid);
        CHECK(tid > 0);
        SAME(parent_tid, tid);
        wait_cleared();
        close(before);
    }
    printf("bare threads %d\n", shared_value);

    int pidfd = -1;
    struct clone_args args;
    memset(&args, 0, sizeof(args));
    args.flags = CLONE_PIDFD;
    args.pidfd = (uint64_t)&pidfd;
    args.exit_signal = SIGCHLD;
    pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
    if (pid == 0) {
        stress_sleep_us(1000);
        _exit(12);
    }
    CHECK(pid > 0 && pidfd >= 0);
    struct pollfd p = {pidfd, POLLIN, 0};
    CHECK(poll(&p, 1, -1) == 1);
    siginfo_t info;
    CHECK(waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) == 0);
    printf("clone3 %d %d\n", info.si_code, info.si_status);
    CHECK(syscall(SYS_clone3, &args, 8) == -1 && errno == EINVAL);
    args.flags = CLONE_THREAD;
    CHECK(syscall(SYS_clone3, &args, sizeof(args)) == -1 && errno == EINVAL);
    return 0;
}
