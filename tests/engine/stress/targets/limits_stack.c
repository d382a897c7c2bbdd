// The limit of the stack, raised and lowered by the program: how deep it may go then.
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress.h"

enum { FRAME = 1000, KIB = 1024, MIB = 1024 * 1024 };

static __attribute__((noinline)) long descend(long depth) {
    volatile char frame[FRAME];
    frame[0] = 1;
    return depth ? descend(depth - 1) + frame[0] : 0;
}

static void limit(rlim_t size) {
    struct rlimit value;
    CHECK(getrlimit(RLIMIT_STACK, &value) == 0);
    value.rlim_cur = size;
    CHECK(setrlimit(RLIMIT_STACK, &value) == 0);
}

static void *limit_in_thread(void *size) {
    limit((rlim_t)size);
    return NULL;
}

struct part {
    const char *name;
    rlim_t first; // 0: none
    long before;  // how deep it goes before the limit is set
    rlim_t size;
    bool in_thread;
    long after;
};

static const struct part parts[] = {
    {"raised", .size = 64 * MIB, .after = 50000},
    {"raised, too deep", .size = 32 * MIB, .after = 50000},
    {"raised, far too deep", .size = 32 * MIB, .after = 5000000},
    {"raised by a thread", .size = 64 * MIB, .in_thread = true, .after = 50000},
    {"lowered", .size = 256 * KIB, .after = 100},
    {"lowered, too deep", .size = 256 * KIB, .after = 500},
    {"lowered when grown", .before = 1000, .size = 256 * KIB, .after = 800},
    {"lowered when grown, too deep", .before = 1000, .size = 256 * KIB, .after = 2000},
    {"lowered, raised", .first = 256 * KIB, .size = 16 * MIB, .after = 12000},
    {"raised, lowered", .first = 64 * MIB, .size = 4 * MIB, .after = 8000},
    {"unlimited", .size = RLIM_INFINITY, .after = 100000},
};

static void run(const struct part *part) {
    if (part->before)
        descend(part->before);
    if (part->first)
        limit(part->first);
    if (part->in_thread) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, limit_in_thread, (void *)part->size) == 0);
        pthread_join(thread, NULL);
    } else {
        limit(part->size);
    }
    _exit(descend(part->after) == part->after ? 7 : 8);
}

int main(void) {
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
        int status, child = fork();
        if (child == 0)
            run(&parts[i]);
        CHECK(waitpid(child, &status, 0) == child);
        // A core file may be written or not.
        printf("%s: signal %d, status %d\n", parts[i].name, WTERMSIG(status), WEXITSTATUS(status));
    }
    return 0;
}
