// Threads that wait in the kernel while another makes a translator throw its code away: the first
// code above 4 GiB, then more of it. No wait may be cut short and none may see EINTR.
#include "stress.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

enum { WAITERS = 8, ROUNDS = 40 };

static int pipe_ends[2];
static sem_t semaphore;
static int waiting;

static long milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *wait_somehow(void *argument) {
    long kind = (long)argument, begin = milliseconds();
    struct timespec time = {0, 300 * 1000 * 1000};
    char byte;
    __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    errno = 0;
    switch (kind) {
    case 0:
        SAME(nanosleep(&time, NULL), 0);
        break;
    case 1:
        SAME(poll(NULL, 0, 300), 0);
        break;
    case 2:
        SAME(read(pipe_ends[0], &byte, 1), 1);
        return NULL;
    case 3:
        SAME(sem_wait(&semaphore), 0);
        return NULL;
    case 4: {
        struct epoll_event event;
        SAME(epoll_wait(epoll_create1(0), &event, 1, 300), 0);
        break;
    }
    case 5: {
        int word = 0;
        SAME(syscall(SYS_futex, &word, 0, 0, &time, NULL, 0), -1);
        SAME(errno, ETIMEDOUT);
        break;
    }
    case 6: {
        uint64_t count = 0;
        int fd = timerfd_create(CLOCK_MONOTONIC, 0);
        struct itimerspec once = {.it_value = time};
        CHECK(timerfd_settime(fd, 0, &once, NULL) == 0);
        SAME(read(fd, &count, 8), 8);
        SAME(count, 1);
        break;
    }
    default:
        SAME(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL), 0);
    }
    CHECK(milliseconds() - begin >= 295);
    return NULL;
}

int main(void) {
    pthread_t threads[WAITERS];
    CHECK(pipe(pipe_ends) == 0);
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    for (long i = 0; i < WAITERS; i++)
        CHECK(pthread_create(&threads[i], NULL, wait_somehow, (void *)i) == 0);
    while (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) < WAITERS)
        SPIN();
    stress_sleep_us(20000);
    long sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned char *code = stress_map(PAGE, PROT_READ | PROT_WRITE); // so that it is not low
        memcpy(code, "\xb8", 1); // mov $round, %eax; ret
        memcpy(code + 1, &round, 4);
        code[5] = 0xc3;
        CHECK(mprotect(code, PAGE, PROT_READ | PROT_EXEC) == 0);
        sum += ((int (*)(void))code)();
        CHECK(munmap(code, PAGE) == 0);
        stress_sleep_us(1000);
    }
    CHECK(write(pipe_ends[1], "x", 1) == 1);
    CHECK(sem_post(&semaphore) == 0);
    for (int i = 0; i < WAITERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    printf("sum %ld\n", sum);
    return 0;
}
