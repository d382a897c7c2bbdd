// The addresses at which old programs ask the kernel for the time, where it still has them.
#include "stress.h"

#include <setjmp.h>
#include <sys/time.h>

static sigjmp_buf back;

static void on_fault(int number, siginfo_t *info, void *context) {
    siglongjmp(back, 1);
}

static uint64_t ask(uint64_t address, void *first, void *second) {
    if (sigsetjmp(back, 1))
        return UINT64_MAX;
    return ((uint64_t(*)(void *, void *))address)(first, second);
}

int main(void) {
    struct timeval now = {0};
    unsigned cpu = UINT32_MAX, node = UINT32_MAX;
    stress_handle(SIGSEGV, on_fault, 0);
    time_t begin = time(NULL);
    if (ask(0xffffffffff600000, &now, NULL) == UINT64_MAX) {
        puts("not here");
        return 0;
    }
    // time() goes by ticks, and may be late.
    CHECK(begin <= now.tv_sec && now.tv_sec <= time(NULL) + 1);
    long seconds = (long)ask(0xffffffffff600400, NULL, NULL);
    CHECK(begin <= seconds && seconds <= time(NULL) + 1);
    SAME(ask(0xffffffffff600800, &cpu, &node), 0);
    CHECK(cpu < 65536);
    SAME(ask(0xffffffffff600c00, NULL, NULL), UINT64_MAX);
    SAME(ask(0xffffffffff600401, NULL, NULL), UINT64_MAX);
    puts("here");
    return 0;
}
