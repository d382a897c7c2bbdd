// A tree of processes, all alive at once, each collecting its children's statuses; memory is
// private where it should be and shared where it should be.
#include "stress.h"

static int private_value = 1;
static _Atomic int *shared;

static int grow(int depth, int id) {
    private_value += id;
    int total = 1;
    (*shared)++;
    if (depth == 0)
        return total;
    pid_t pids[3];
    for (int i = 0; i < 3; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(grow(depth - 1, id * 3 + i));
    }
    for (int i = 0; i < 3; i++) {
        int status = stress_wait(pids[i]);
        CHECK(WIFEXITED(status));
        total += WEXITSTATUS(status);
    }
    return total;
}

int main(void) {
    shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    printf("before\n");
    fflush(stdout);
    int total = grow(4, 1);
    printf("total %d shared %d private %d\n", total, *shared, private_value);
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(i);
        SAME(stress_wait(pid), i << 8);
    }
    CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    return 0;
}
