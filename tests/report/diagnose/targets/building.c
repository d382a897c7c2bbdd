// A table is filled, and nothing else is done.
#include <stdlib.h>
#include <time.h>
static void *rows[4000];
static void *row(void) { return malloc(500); }
int main(void) {
    for (int i = 0; i < 4000; i++) {
        rows[i] = row();
        nanosleep(&(struct timespec){0, 300000}, NULL);
    }
    return rows[0] == NULL;
}
