// Data goes through a pipe while a third thread showers reader and writer with signals. With
// SA_RESTART no call may report EINTR; without, those that do must have moved nothing.
#include "stress.h"

enum { BYTES = 300000 };

static int fds[2];
static volatile int stop, ended;
static _Atomic long handled;
static _Atomic int interruptions;
static pthread_t reader, writer;

static void on_signal(int s, siginfo_t *info, void *context) {
    handled++;
}

static void *write_all(void *arg) {
    unsigned char block[512];
    long sent = 0;
    while (sent < BYTES) {
        long size = 1 + sent % 500;
        if (size > BYTES - sent)
            size = BYTES - sent;
        for (long i = 0; i < size; i++)
            block[i] = (unsigned char)((sent + i) * 31 >> 3);
        long n = write(fds[1], block, (size_t)size);
        if (n < 0) {
            CHECK(errno == EINTR);
            interruptions++;
            continue;
        }
        sent += n;
    }
    // The reader is blocked by now, and still showered.
    while (handled < 50)
        stress_sleep_us(100);
    close(fds[1]);
    return NULL;
}

static void *read_all(void *arg) {
    unsigned char block[300];
    uint64_t sum = 0;
    long got = 0;
    for (;;) {
        long n = read(fds[0], block, 1 + (size_t)(got % 300));
        if (n < 0) {
            CHECK(errno == EINTR);
            interruptions++;
            continue;
        }
        if (n == 0)
            break;
        for (long i = 0; i < n; i++)
            sum = stress_mix(sum, block[i]);
        got += n;
    }
    SAME(got, BYTES);
    ended = 1;
    return (void *)sum;
}

static void *storm(void *arg) {
    while (!stop) {
        pthread_kill(reader, SIGUSR1);
        pthread_kill(writer, SIGUSR2);
        stress_sleep_us(20);
    }
    return NULL;
}

int main(void) {
    for (int restart = 0; restart < 2; restart++) {
        handled = interruptions = stop = ended = 0;
        CHECK(pipe(fds) == 0);
        stress_handle(SIGUSR1, on_signal, restart ? SA_RESTART : 0);
        stress_handle(SIGUSR2, on_signal, restart ? SA_RESTART : 0);
        reader = stress_thread(read_all, NULL);
        writer = stress_thread(write_all, NULL);
        pthread_t stormer = stress_thread(storm, NULL);
        // Threads that have ended may still be signalled until they are joined.
        while (!ended)
            stress_sleep_us(100);
        stop = 1;
        stress_join(stormer);
        uint64_t sum = (uint64_t)stress_join(reader);
        stress_join(writer);
        if (restart)
            SAME(interruptions, 0);
        printf("restart %d sum %016llx\n", restart, (unsigned long long)sum);
        close(fds[0]);
    }
    return 0;
}
