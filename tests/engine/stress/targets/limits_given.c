// Resource limits that the program finds (see LIMITS in the suite's driver).
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "stress.h"

NOINLINE static int descend(volatile char *above, int depth) {
    volatile char frame[1024];
    frame[0] = above[0];
    return depth ? descend(frame, depth - 1) + frame[0] : frame[0];
}

static void *no_work(void *argument) {
    return argument;
}

int main(void) {
    static const int resources[] = {RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_FSIZE,
                                    RLIMIT_NOFILE};
    for (unsigned i = 0; i < LENGTH(resources); i++) {
        struct rlimit value;
        CHECK(getrlimit(resources[i], &value) == 0);
        printf("%d: %lu %lu\n", resources[i], value.rlim_cur, value.rlim_max);
    }
    volatile char first = 1;
    printf("stack: %d\n", descend(&first, 24));
    char *block = malloc(100000);
    CHECK(block);
    memset(block, 1, 100000);
    printf("large: %d\n", malloc(1ul << 30) != NULL);
    fflush(stdout);
    int child = fork();
    if (child == 0)
        _exit(5);
    printf("child: %x\n", stress_wait(child));
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    CHECK(pthread_create(&thread, &attributes, no_work, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    int last = -1, fd;
    while (last < 100 && (fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    printf("last: %d\n", last);
    fflush(stdout);
    // The whole stack is there, and no more.
    struct rlimit stack;
    getrlimit(RLIMIT_STACK, &stack);
    if (stack.rlim_cur > 1 << 20)
        return 0;
    printf("deep: %d\n", descend(&first, (int)(stack.rlim_cur * 3 / 4 / 1200)));
    fflush(stdout);
    return descend(&first, (int)(stack.rlim_cur / 1024));
}
