// Many small functions in memory that is reused, in mappings all over the address space: below
// 2 GiB, at the kernel's choice, at fixed high addresses. Calls between them, and back into C.
#include "stress.h"

typedef long (*function)(long);

static long back(long x) {
    return x * 2 + 1;
}

// movabs $value,%rax; add %rdi,%rax; ret
static unsigned char *emit_add(unsigned char *p, long value) {
    *p++ = 0x48, *p++ = 0xb8;
    memcpy(p, &value, 8);
    p += 8;
    *p++ = 0x48, *p++ = 0x01, *p++ = 0xf8, *p++ = 0xc3;
    return p;
}

// sub $8,%rsp; movabs $callee,%rax; call *%rax; add $8,%rsp; inc %rax; ret
static unsigned char *emit_call(unsigned char *p, void *callee) {
    static const unsigned char head[] = {0x48, 0x83, 0xec, 0x08, 0x48, 0xb8},
                               tail[] = {0xff, 0xd0, 0x48, 0x83, 0xc4,
                                         0x08, 0x48, 0xff, 0xc0, 0xc3};
    memcpy(p, head, sizeof(head));
    memcpy(p + sizeof(head), &callee, 8);
    memcpy(p + sizeof(head) + 8, tail, sizeof(tail));
    return p + sizeof(head) + 8 + sizeof(tail);
}

static long fill_and_run(unsigned char *area, size_t size, int seed) {
    static function functions[4000];
    size_t count = 0;
    unsigned char *p = area;
    while (p + 64 < area + size && count < LENGTH(functions)) {
        functions[count] = (function)p;
        if (count % 3 == 2)
            p = emit_call(p, (void *)functions[count - 1]);
        else if (count % 7 == 3)
            p = emit_call(p, (void *)back);
        else
            p = emit_add(p, (long)count + seed);
        p = (unsigned char *)(((uintptr_t)p + 15) & ~15ul);
        count++;
    }
    long sum = 0;
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < count; i++)
            sum += functions[i](round);
    return sum;
}

int main(void) {
    enum { SIZE = 64 * 1024 };
    const int RWX = PROT_READ | PROT_WRITE | PROT_EXEC;
    const int ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS;
    static const uintptr_t fixed[] = {0x10000000, 0x50000000, 0x123456780000, 0x300000000000,
                                      0x7e0000000000};
    unsigned char *area = stress_map(SIZE, RWX);
    for (int seed = 0; seed < 20; seed++)
        printf("%ld ", fill_and_run(area, SIZE, seed));
    putchar('\n');
    unsigned char *low = mmap(NULL, SIZE, RWX, ANONYMOUS | MAP_32BIT, -1, 0);
    CHECK(low != MAP_FAILED && (uintptr_t)low < 1ul << 31);
    printf("low %ld\n", fill_and_run(low, SIZE, 1));
    for (size_t i = 0; i < LENGTH(fixed); i++) {
        unsigned char *p =
            mmap((void *)fixed[i], SIZE, RWX, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (p != (void *)fixed[i])
            p = mmap((void *)fixed[i], SIZE, RWX, ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED);
        printf("at %#lx: %ld\n", (unsigned long)fixed[i], fill_and_run(p, SIZE, (int)i));
        munmap(p, SIZE);
    }
    // Memory given back and taken again between generations.
    long sum = 0;
    for (int i = 0; i < 30; i++) {
        unsigned char *p = stress_map(8 * PAGE, RWX);
        sum += fill_and_run(p, 8 * PAGE, i);
        munmap(p, 8 * PAGE);
    }
    printf("generations %ld\n", sum);
    return 0;
}
