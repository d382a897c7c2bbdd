// 300 MB of zeroed data, touched sparsely.
#include "stress.h"

static unsigned char big[300 << 20];

int main(void) {
    uint64_t h = 0;
    for (size_t i = 0; i < sizeof(big); i += 1 << 20) {
        SAME(big[i + 77], 0);
        big[i + 77] = (unsigned char)(i >> 20);
    }
    for (size_t i = 0; i < sizeof(big); i += 1 << 20)
        h = stress_mix(h, big[i + 77]);
    printf("%016llx\n", (unsigned long long)h);
    return 0;
}
