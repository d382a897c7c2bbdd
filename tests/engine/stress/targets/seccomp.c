// Filters of system calls: what installing them answers, and that the process goes on in all it
// does.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "stress.h"

// What an engine may need and this program does not call after it has installed the filter.
static const int refused[] = {SYS_memfd_create, SYS_sendmsg, SYS_socketpair, SYS_ftruncate};

static long seccomp(unsigned operation, unsigned flags, void *argument) {
    long result = syscall(SYS_seccomp, operation, flags, argument);
    return result < 0 ? -errno : result;
}

static void *in_thread(void *argument) {
    volatile char *memory = malloc(1 << 20);
    memory[4096] = 1;
    free((void *)memory);
    return argument;
}

int main(void) {
    struct sock_filter code[2 * 4 + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    unsigned used = 1;
    for (unsigned i = 0; i < 4; i++) {
        code[used++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[i], 0, 1);
        code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    }
    code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = used, .filter = code}, empty = {0};
    uint32_t action = SECCOMP_RET_ERRNO;

    printf("probe %ld\n", seccomp(SECCOMP_SET_MODE_FILTER, 0, NULL));
    printf("empty %ld\n", seccomp(SECCOMP_SET_MODE_FILTER, 0, &empty));
    printf("flags %ld\n", seccomp(SECCOMP_SET_MODE_FILTER, ~0u, &program));
    printf("strict with flags %ld\n", seccomp(SECCOMP_SET_MODE_STRICT, 1, NULL));
    printf("action %ld\n", seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action));
    printf("mode %d\n", prctl(PR_GET_SECCOMP));
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    printf("filter %ld\n", seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
    printf("mode %d\n", prctl(PR_GET_SECCOMP));
    CHECK(syscall(SYS_memfd_create, "name", 0) == -1 && errno == ENOSYS);
    printf("once more %d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    printf("strict after filter %ld\n", seccomp(SECCOMP_SET_MODE_STRICT, 0, (void *)1));
    fflush(stdout);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, in_thread, NULL) == 0);
        pthread_join(thread, NULL);
    }
    // A child that reports to nobody must live as well.
    pid_t child = fork();
    if (child == 0) {
        in_thread(NULL);
        execl("/bin/echo", "echo", "after exec", NULL);
        _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %x\n", status);
    return 0;
}
