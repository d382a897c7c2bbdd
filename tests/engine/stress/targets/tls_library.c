// The library that tls_dlopen and dlopen_loop load: thread-local storage, constructor, destructor.
#include <stdlib.h>

static __thread long counter = 100;
static __thread char block[5000];
static long loads;

long library_next(int step);
long library_loads(void);
void library_notify(long *place);

static long *notify;

__attribute__((constructor)) static void enter(void) {
    loads++;
}
__attribute__((destructor)) static void leave(void) {
    if (notify)
        ++*notify;
}

long library_next(int step) {
    block[counter % 5000]++;
    return counter += step;
}

long library_loads(void) {
    return loads;
}
void library_notify(long *place) {
    notify = place;
}
