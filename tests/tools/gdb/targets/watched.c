// Variables that are written and read, by instructions and by a function of the C library.
#include <string.h>

volatile int first, second = 2, third = 3, sink;
char *volatile source = "abcd";

static void write_first(void) {
    first = 7;
}

static void read_second(void) {
    sink = second;
}

static void change_third(void) {
    third++;
}

int main(void) {
    write_first();
    read_second();
    change_third();
    memcpy((void *)&first, source, sizeof first);
    return 0;
}
