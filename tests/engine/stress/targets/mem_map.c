// mmap, munmap, mremap, mprotect, madvise, brk as the kernel answers them.
#include "stress.h"
#include <fcntl.h>
#include <setjmp.h>

static sigjmp_buf jump;
static volatile int fault_code;

static void on_fault(int s, siginfo_t *info, void *context) {
    fault_code = s * 100 + info->si_code;
    siglongjmp(jump, 1);
}

// 0 if the byte can be read (and written, if asked), or signal * 100 + code.
static int probe(volatile unsigned char *p, int write) {
    fault_code = 0;
    if (sigsetjmp(jump, 1) == 0) {
        unsigned char v = *p;
        if (write)
            *p = v;
    }
    return fault_code;
}

static void mapping(void) {
    const int ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS;
    unsigned char *p = stress_map(16 * PAGE, PROT_READ | PROT_WRITE);
    memset(p, 7, 16 * PAGE);
    // A fixed mapping replaces what is there, exactly.
    CHECK(mmap(p + 4 * PAGE, 2 * PAGE, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0) == p + 4 * PAGE);
    printf("fixed: %d %d %d %d\n", p[4 * PAGE - 1], p[4 * PAGE], p[6 * PAGE - 1], p[6 * PAGE]);
    printf("fixed protection: %d %d\n", probe(p + 4 * PAGE, 1), probe(p + 6 * PAGE, 1));
    CHECK(mmap(p, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
    printf("noreplace: %s\n", strerror(errno));
    CHECK(munmap(p + 8 * PAGE, PAGE) == 0);
    printf("hole: %d %d %d\n", probe(p + 8 * PAGE - 1, 0), probe(p + 8 * PAGE, 0),
           probe(p + 9 * PAGE, 0));
    CHECK(mmap(p + 8 * PAGE, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
          p + 8 * PAGE);
    CHECK(munmap(p, 16 * PAGE) == 0);
    void *hint = mmap(p, PAGE, PROT_READ, ANONYMOUS, -1, 0);
    printf("hint taken: %d\n", hint == p);
    unsigned char *low = mmap(NULL, PAGE, PROT_READ, ANONYMOUS | MAP_32BIT, -1, 0);
    CHECK(low != MAP_FAILED && (uintptr_t)low < 1ul << 31);
    CHECK(mmap(NULL, 0, PROT_READ, ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
    CHECK(mmap((void *)123, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED &&
          errno == EINVAL);
    CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF);
    CHECK(mmap(NULL, ~0ul - PAGE, PROT_READ, ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
    CHECK(mmap((void *)0x7ffffffff000, PAGE * 4, PROT_READ, ANONYMOUS | MAP_FIXED, -1, 0) ==
              MAP_FAILED &&
          errno == ENOMEM);
    CHECK(munmap((void *)1, PAGE) == -1 && errno == EINVAL);
    CHECK(munmap(p + 64 * PAGE, 0) == -1 && errno == EINVAL);
    unsigned char *huge =
        mmap(NULL, 8ul << 30, PROT_READ | PROT_WRITE, ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(huge != MAP_FAILED);
    huge[5ul << 30] = 1;
    CHECK(munmap(huge, 8ul << 30) == 0);
}

static void remapping(void) {
    unsigned char *p = stress_map(4 * PAGE, PROT_READ | PROT_WRITE);
    for (int i = 0; i < 4; i++)
        p[(size_t)i * PAGE] = (unsigned char)(i + 1);
    unsigned char *q = mremap(p, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED);
    printf("grown: %d %d %d\n", q[0], q[3 * PAGE], q[63 * PAGE]);
    CHECK(mremap(q, 64 * PAGE, 2 * PAGE, 0) == q);
    printf("shrunk: %d %d\n", q[PAGE], probe(q + 2 * PAGE, 0));
    unsigned char *target = stress_map(8 * PAGE, PROT_NONE);
    CHECK(mremap(q, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, target + PAGE) ==
          target + PAGE);
    printf("moved: %d %d %d\n", target[PAGE], probe(target, 0), probe(target + 3 * PAGE, 0));
    printf("old place: %d\n", probe(q, 0));
    CHECK(mremap((void *)PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED && errno == EFAULT);
    for (int i = 0; i < 200; i++) {
        unsigned char *a = stress_map(PAGE * (size_t)(1 + i % 5), PROT_READ | PROT_WRITE);
        *a = (unsigned char)i;
        a = mremap(a, PAGE * (size_t)(1 + i % 5), PAGE * 9, MREMAP_MAYMOVE);
        CHECK(a != MAP_FAILED && *a == (unsigned char)i);
        CHECK(munmap(a, PAGE * 9) == 0);
    }
}

static void protecting(void) {
    unsigned char *p = stress_map(4 * PAGE, PROT_READ | PROT_WRITE);
    static const int protections[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE, PROT_EXEC,
                                      PROT_READ | PROT_EXEC};
    for (size_t i = 0; i < LENGTH(protections); i++) {
        CHECK(mprotect(p + PAGE, PAGE, protections[i]) == 0);
        printf("protection %d: read %d write %d around %d %d\n", protections[i],
               protections[i] == PROT_EXEC ? 0 : probe(p + PAGE, 0), probe(p + PAGE + 5, 1),
               probe(p, 1), probe(p + 2 * PAGE, 1));
    }
    CHECK(munmap(p + 3 * PAGE, PAGE) == 0);
    CHECK(mprotect(p, 4 * PAGE, PROT_READ) == -1 && errno == ENOMEM);
    CHECK(mprotect(p + 1, PAGE, PROT_READ) == -1 && errno == EINVAL);
    p = stress_map(4 * PAGE, PROT_READ | PROT_WRITE);
    memset(p, 5, 4 * PAGE);
    CHECK(madvise(p + PAGE, PAGE, MADV_DONTNEED) == 0);
    printf("dontneed: %d %d %d\n", p[PAGE - 1], p[PAGE], p[2 * PAGE]);
    CHECK(madvise(p, PAGE, 12345) == -1 && errno == EINVAL);
    unsigned char resident[4];
    CHECK(mincore(p, 4 * PAGE, resident) == 0);
    printf("resident: %d\n", resident[0] & 1);
    CHECK(mlock(p, PAGE) == 0 && munlock(p, PAGE) == 0);
    CHECK(msync(p, PAGE, MS_SYNC) == 0);
}

static void growing(void) {
    // Room of 1,000 pages below a mapping that grows; the kernel keeps 256 pages to what lies
    // below.
    unsigned char *room = stress_map(1001 * PAGE, PROT_NONE), *top = room + 1000 * PAGE;
    CHECK(munmap(room, 1001 * PAGE) == 0);
    CHECK(mmap(top, PAGE, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0) == top);
    for (size_t i = 1; i < 300; i++)
        top[-(long)(i * PAGE) + 5] = (unsigned char)i;
    printf("grown down %d %d\n", top[5 - (long)PAGE], top[5 - 299 * (long)PAGE]);
}

static void breaking(void) {
    char *start = sbrk(0);
    CHECK(sbrk(100000) == start);
    memset(start, 3, 100000);
    CHECK((char *)sbrk(0) == start + 100000);
    CHECK(brk(start + 10 * PAGE) == 0);
    CHECK((char *)sbrk(0) == start + 10 * PAGE);
    CHECK(brk(start) == 0 && (char *)sbrk(0) == start);
    CHECK(sbrk(100000) == start);
    for (int i = 0; i < 100000; i += 999)
        if (i > (int)PAGE)
            SAME(start[i], 0);
    CHECK(sbrk(64 << 20) != (void *)-1);
    memset(start, 1, 64 << 20);
    puts("brk agrees");
}

int main(void) {
    stress_handle(SIGSEGV, on_fault, 0);
    stress_handle(SIGBUS, on_fault, 0);
    mapping();
    remapping();
    protecting();
    growing();
    breaking();
    return 0;
}
