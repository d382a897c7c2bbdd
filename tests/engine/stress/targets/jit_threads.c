// Several threads run the same fresh code at the same moment, again and again, while the process
// forks: the children too run code that is new to them. No lock of whoever runs the program may be
// left held in a child.
#include "stress.h"

typedef uint64_t (*function)(uint64_t);

enum { THREADS = 4, ROUNDS = 300, SIZE = 2048 };

static unsigned char *area;
static pthread_barrier_t barrier;

// lea value(%rdi),%rax (48 8d 87 imm32), then 100 times: test $1,%al; jz +3; inc %rax; then ret.
static void emit(unsigned char *p, uint32_t value) {
    memcpy(p, "\x48\x8d\x87", 3);
    memcpy(p + 3, &value, 4);
    p += 7;
    for (int i = 0; i < 100; i++, p += 7)
        memcpy(p, "\xa8\x01\x74\x03\x48\xff\xc0", 7);
    *p = 0xc3;
}

static uint64_t expected(uint32_t value, uint64_t x) {
    uint64_t r = value + x;
    return r & 1 ? r + 1 : r;
}

static void *work(void *arg) {
    uint64_t id = (uint64_t)arg;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        unsigned char *p = area + round * SIZE;
        if (id == 0)
            emit(p, round * 5);
        pthread_barrier_wait(&barrier);
        SAME(((function)p)(id), expected(round * 5, id));
        if (id == 1 && round % 10 == 0) {
            pid_t pid = fork();
            if (pid == 0) {
                unsigned char *q = area + (ROUNDS + 1) * SIZE;
                emit(q, round);
                SAME(((function)q)(3), expected(round, 3));
                SAME(((function)p)(9), expected(round * 5, 9));
                _exit(17);
            }
            SAME(stress_wait(pid), 17 << 8);
        }
    }
    return NULL;
}

int main(void) {
    area = stress_map((ROUNDS + 2) * SIZE, PROT_READ | PROT_WRITE | PROT_EXEC);
    CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < THREADS; i++)
        threads[i] = stress_thread(work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        stress_join(threads[i]);
    puts("all rounds right");
    return 0;
}
