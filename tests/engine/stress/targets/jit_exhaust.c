// More code than a translator can keep: ten million branches in all, in an area that is filled anew
// each time. Each pass must run the code that is there now.
#include "stress.h"

enum { AREA = 4 << 20, PASSES = 5 };

int main(void) {
    unsigned char *area = stress_map(AREA, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t expected = 0;
        unsigned char *p = area;
        // test %edi,%edi first; then jz +0 or jnz +0, now and then lea 1(%rdi),%rdi (flags kept).
        memcpy(p, "\x85\xff", 2);
        for (p += 2; p < area + AREA - 16;) {
            unsigned long at = (unsigned long)(p - area);
            if ((at * 2654435761u >> 20 & 63) == (unsigned)pass) {
                memcpy(p, "\x48\x8d\x7f\x01", 4);
                p += 4;
                expected++;
            } else {
                p[0] = (at + (unsigned)pass) & 4 ? 0x74 : 0x75;
                p[1] = 0;
                p += 2;
            }
        }
        memcpy(p, "\x48\x89\xf8\xc3", 4);
        uint64_t got = ((uint64_t(*)(uint64_t))area)(7);
        SAME(got, expected + 7);
        printf("pass %d: %llu\n", pass, (unsigned long long)got);
    }
    return 0;
}
