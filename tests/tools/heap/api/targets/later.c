// A program of a later version of the header, which this recorder cannot serve; then one of today's.
#include <stdio.h>
#include <sys/prctl.h>

#include <quern/heap.h>

int main(void) {
    for (unsigned long version = 2; version > 0; version--) {
        struct quern_heap_link link = {version, NULL};
        int answer = prctl(QUERN_HEAP_PRCTL, &link, 0L, 0L, 0L);
        printf("version %lu: %s\n", version, answer == 0 && link.request ? "served" : "refused");
    }
    return 0;
}
