// Over-allocation by two ways to one place.
#include <stdlib.h>
static char *line(void) { char *text = malloc(4000); text[0] = 1; return text; }
static char *next(void) { return line(); }
static char *get(void) { return next(); }
static int first(void) { return get()[0]; }
static int second(void) { return get()[0]; }
int main(void) {
    int sum = 0;
    for (int i = 0; i < 200; i++)
        sum += first() + second();
    // An arena: of its pages, only those that are touched take memory.
    char *arena = malloc(1 << 20);
    arena[0] = sum == 400;
    return 1 - arena[0];
}
