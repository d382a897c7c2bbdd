// Four mistakes, the last of them only with MORE, one twice with TWICE; FAR moves everything down.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef FAR




















#endif

static int *make(int count) {
    return malloc(count * sizeof(int));
}

static void overrun(void) {
    int *numbers = make(4);
    numbers[4] = 1;
    free(numbers);
}

static void lose(void) {
    memset(make(10), 0, 40);
#ifdef TWICE
    memset(make(20), 0, 80);
#endif
}

static void decide(void) {
    int *numbers = make(8);
    if (numbers[3] > 2)
        puts("more");
    free(numbers);
}

#ifdef MORE
static void use_after_free(void) {
    int *numbers = make(2);
    free(numbers);
    numbers[1] = 3;
}
#endif

int main(void) {
    overrun();
    lose();
    decide();
#ifdef MORE
    use_after_free();
#endif
    return 0;
}
