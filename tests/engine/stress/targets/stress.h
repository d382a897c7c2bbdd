// What the stress targets share.
//
// A target checks itself: CHECK ends the program with status 1 and says where on stdout, so that a
// difference from the native run names the line. Everything printed must be independent of timing
// and addresses, because the runner compares the output of native and translated runs byte by byte.
// Nothing here has a deadline: the runner's timeout is the only one.
#ifndef QUERN_STRESS_H
#define QUERN_STRESS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE       4096ul
#define UNUSED     __attribute__((unused))
#define NOINLINE   __attribute__((noinline))
#define BARRIER()  __asm__ volatile("" ::: "memory")
#define SPIN()     __asm__ volatile("pause" ::: "memory")
#define LENGTH(a)  (sizeof(a) / sizeof((a)[0]))
#define CHECK(c)   ((c) ? (void)0 : stress_fail(__FILE__, __LINE__, #c, 0, 0))
#define SAME(a, b) stress_same(__FILE__, __LINE__, #a " == " #b, (uint64_t)(a), (uint64_t)(b))

// Usable in a handler and in a forked child: no locks, no buffers.
__attribute__((noreturn)) static inline void stress_fail(const char *file, int line,
                                                         const char *what, uint64_t a, uint64_t b) {
    char text[512];
    const char *base = strrchr(file, '/');
    int n = snprintf(text, sizeof(text), "FAIL %s:%d: %s (%#llx, %#llx, errno %d)\n",
                     base ? base + 1 : file, line, what, (unsigned long long)a,
                     (unsigned long long)b, errno);
    if (write(1, text, (size_t)n) != n)
        _exit(3);
    _exit(1);
}

static inline void stress_same(const char *file, int line, const char *what, uint64_t a,
                               uint64_t b) {
    if (a != b)
        stress_fail(file, line, what, a, b);
}

static inline void stress_handle(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = handler;
    action.sa_flags = flags | SA_SIGINFO;
    CHECK(sigaction(signal, &action, NULL) == 0);
}

static inline void stress_sleep_us(long us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

static inline uint64_t stress_mix(uint64_t h, uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static inline pid_t stress_tid(void) {
    return (pid_t)syscall(SYS_gettid);
}

// Waits for a child and gives its wait status.
static inline int stress_wait(pid_t pid) {
    int status = -1;
    pid_t got;
    do
        got = waitpid(pid, &status, 0);
    while (got < 0 && errno == EINTR);
    CHECK(got == pid);
    return status;
}

static inline pthread_t stress_thread(void *(*run)(void *), void *arg) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, arg) == 0);
    return thread;
}

static inline void *stress_join(pthread_t thread) {
    void *result;
    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

// Anonymous memory anywhere.
static inline unsigned char *stress_map(size_t size, int prot) {
    void *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return (unsigned char *)p;
}

#endif
