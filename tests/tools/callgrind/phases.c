// Phases of which only some are to be collected.
#include <stdint.h>
#include <string.h>

// A request to the tool, as valgrind.h makes it.
static void request(uint64_t code, const char *text) {
    volatile uint64_t words[6] = {code, (uint64_t)text};
    uint64_t result = 0;
    __asm__ volatile("rol $3, %%rdi\n\trol $13, %%rdi\n\trol $61, %%rdi\n\trol $51, %%rdi\n\t"
                     "xchg %%rbx, %%rbx"
                     : "+d"(result)
                     : "a"(words)
                     : "cc", "memory");
}

enum { DUMP = 0x43540000, ZERO, TOGGLE, DUMP_AT, START, STOP };

__attribute__((noinline)) static int leaf(int n) {
    volatile int sum = 0;
    for (int i = 0; i < n; i++)
        sum += i * n;
    return sum;
}

__attribute__((noinline)) static int inner(int n) {
    return leaf(n) + leaf(n + 1);
}

__attribute__((noinline)) static int wanted(int n) {
    int sum = 0;
    for (int i = 0; i < 3; i++)
        sum += inner(n + i);
    return sum;
}

__attribute__((noinline)) static int other(int n) {
    return inner(n) + 7;
}

__attribute__((noinline)) static int phases(void) {
    int sum = 0;
    for (int i = 0; i < 5; i++) {
        sum += wanted(i);
        sum += other(i);
    }
    return sum;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "plain";
    int sum = phases();
    if (strcmp(how, "toggle") == 0)
        request(TOGGLE, NULL);
    if (strcmp(how, "start") == 0)
        request(START, NULL);
    if (strcmp(how, "stop") == 0)
        request(STOP, NULL);
    if (strcmp(how, "dump") == 0)
        request(DUMP, NULL);
    if (strcmp(how, "dump-at") == 0)
        request(DUMP_AT, "half");
    if (strcmp(how, "zero") == 0)
        request(ZERO, NULL);
    sum += phases();
    if (strcmp(how, "toggle") == 0)
        request(TOGGLE, NULL);
    if (strcmp(how, "start") == 0)
        request(STOP, NULL);
    sum += phases();
    return sum == 12345;
}
