// Works whenever it is told to, and says when it has: counting is switched in between.
#include <unistd.h>

#define APART __attribute__((noinline))

static volatile int sum;

APART static void work_a(void) {
    sum += 1;
}
APART static void work_b(void) {
    sum += 2;
}
APART static void work_c(void) {
    sum += 3;
}
APART static void work_d(void) {
    sum += 4;
}

APART static void work(char which) {
    for (int i = 0; i < 1000 && which != '-'; i++) {
        if (which == 'a')
            work_a();
        else if (which == 'b')
            work_b();
        else if (which == 'c')
            work_c();
        else
            work_d();
    }
}

int main(void) {
    char letter;
    while (read(0, &letter, 1) == 1) {
        work(letter);
        if (write(1, &letter, 1) != 1)
            return 1;
    }
    return 0;
}
