// Three mistakes, one more with MORE, one twice with TWICE, with DEPTH so many calls deeper. They
// are volatile: a compiler that optimises must neither leave them out nor make the last call of a function
// a jump.
#include <stdio.h>
#include <stdlib.h>

static volatile int *volatile last;

static volatile int *make(int count) {
    last = malloc(count * sizeof(int));
    return last;
}

static void drop(volatile int *numbers) {
    free((int *)numbers);
    last = NULL;
}

static void overrun(void) {
    volatile int *numbers = make(4);
    numbers[4] = 1;
    drop(numbers);
}

static void lose(void) {
    make(10)[0] = 0;
#ifdef TWICE
    make(20)[0] = 0;
#endif
    last = NULL;
}

static void decide(void) {
    volatile int *numbers = make(8);
    if (numbers[3] > 2)
        puts("more");
    drop(numbers);
}

#ifdef MORE
static void use_after_free(void) {
    volatile int *numbers = make(2);
    drop(numbers);
    numbers[1] = 3;
}
#endif

#ifdef DEPTH
static void deep(int more) {
    if (more)
        deep(more - 1);
    else
        lose();
    last = NULL;
}
#endif

int main(void) {
    overrun();
#ifdef DEPTH
    deep(DEPTH);
#else
    lose();
#endif
    decide();
#ifdef MORE
    use_after_free();
#endif
    return 0;
}
