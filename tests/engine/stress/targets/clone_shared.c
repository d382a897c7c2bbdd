// clone with CLONE_VM and without CLONE_THREAD or CLONE_VFORK: a process that shares memory, while
// both sides go on and wait for each other.
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>

#include "stress.h"

enum { STACK = 256 << 10, ROUNDS = 2000 };

static uint32_t turn; // 0: the parent's, 1: the child's
static int pipes[2], shared_fd = -1, child_tid = -1, handled;
static uint64_t sum;
static pid_t parent;

static void pass_to(uint32_t whom) {
    __atomic_store_n(&turn, whom, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &turn, FUTEX_WAKE, 10, NULL, NULL, 0);
}

static void wait_for(uint32_t who) {
    uint32_t now;
    while ((now = __atomic_load_n(&turn, __ATOMIC_SEQ_CST)) != who)
        syscall(SYS_futex, &turn, FUTEX_WAIT, now, NULL, NULL, 0);
}

static int talk(void *argument) {
    for (unsigned i = 0; i < ROUNDS; i++) {
        wait_for(1);
        sum = stress_mix(sum, i);
        pass_to(0);
    }
    return getppid() == parent && getpid() != parent ? 21 : 22;
}

static int read_pipe(void *argument) {
    char byte;
    return read(pipes[0], &byte, 1) == 1 ? byte : 99;
}

static int open_file(void *argument) {
    shared_fd = open("/dev/null", O_RDONLY);
    return 0;
}

static int outlive(void *argument) {
    while (getppid() == parent)
        stress_sleep_us(1000);
    return 0;
}

static int leave_in_group(void *argument) {
    syscall(SYS_exit_group, 9);
    return 0;
}

static int die(void *argument) {
    *(volatile int *)8 = 1;
    return 0;
}

static int become_other(void *argument) {
    execl("/bin/sh", "sh", "-c", "exit 12", NULL);
    return 1;
}

static void on_signal(int number) {
    handled++;
}

static int handle(void *argument) {
    signal(SIGUSR1, on_signal);
    raise(SIGUSR1);
    return handled;
}

static int start(int (*function)(void *), int flags, char *stack) {
    int tid = -1;
    int child = clone(function, stack + STACK, CLONE_VM | CLONE_PARENT_SETTID | flags | SIGCHLD,
                      NULL, &tid, NULL, &child_tid);
    CHECK(child > 0 && tid == child);
    return child;
}

int main(void) {
    char *stack = (char *)stress_map(2 * STACK, PROT_READ | PROT_WRITE), *second = stack + STACK;
    uint64_t expected = 0;
    parent = getpid();
    int child = start(talk, 0, stack);
    for (unsigned i = 0; i < ROUNDS; i++) {
        pass_to(1);
        wait_for(0);
        expected = stress_mix(expected, i);
        SAME(sum, expected);
    }
    printf("talk: %x\n", stress_wait(child));
    CHECK(pipe(pipes) == 0);
    child = start(read_pipe, 0, stack);
    int other = start(read_pipe, 0, second);
    CHECK(write(pipes[1], "AA", 2) == 2);
    printf("pipe: %x %x\n", stress_wait(child), stress_wait(other));
    child = start(open_file, 0, stack);
    printf("apart: %x", stress_wait(child));
    printf(" %d\n", fcntl(shared_fd, F_GETFD));
    child = start(open_file, CLONE_FILES, stack);
    printf("shared: %x", stress_wait(child));
    printf(" %d\n", fcntl(shared_fd, F_GETFD));
    child_tid = -1;
    child = start(leave_in_group, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID, stack);
    printf("group: %x", stress_wait(child));
    printf(" %d\n", child_tid);
    printf("dead: %x\n", stress_wait(start(die, 0, stack)) & 0x7f);
    printf("other: %x\n", stress_wait(start(become_other, 0, stack)));
    printf("handlers apart: %x\n", stress_wait(start(handle, 0, stack)));
    printf("handlers shared: %x\n", stress_wait(start(handle, CLONE_SIGHAND, stack)));
    raise(SIGUSR1);
    printf("handled: %d\n", handled);
    // A parent that does not wait for the last one.
    start(outlive, 0, stack);
    return 0;
}
