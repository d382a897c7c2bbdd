// Self-modifying code in every form that x86 promises to work in one thread: write then call, on
// the stack, the next instruction, code on the page it runs from, RW/RX toggling, two mappings of
// one page, writes by the kernel, remapping, replaced file mappings.
#include "stress.h"
#include <fcntl.h>
#include <sys/uio.h>

typedef int (*function)(int);

// mov $value, %eax; add %edi, %eax; ret
static void emit(unsigned char *p, int value) {
    static const unsigned char tail[] = {0x01, 0xf8, 0xc3};
    p[0] = 0xb8;
    memcpy(p + 1, &value, 4);
    memcpy(p + 5, tail, 3);
}

static const int RWX = PROT_READ | PROT_WRITE | PROT_EXEC;

static void write_and_call(void) {
    unsigned char *p = stress_map(PAGE, RWX);
    long sum = 0;
    for (int i = 0; i < 2000; i++) {
        unsigned char *at = p + i % 7 * 16;
        emit(at, i);
        sum += ((function)at)(i);
    }
    printf("write and call %ld\n", sum);
    // Only the immediate changes.
    sum = 0;
    emit(p, 0);
    for (int i = 0; i < 2000; i++) {
        *(int *)(p + 1) = i;
        sum += ((function)p)(1);
    }
    printf("immediate %ld\n", sum);
}

static void on_the_stack(void) {
    unsigned char code[3 * PAGE];
    unsigned char *page = (unsigned char *)(((uintptr_t)code + PAGE - 1) & ~(PAGE - 1));
    CHECK(mprotect(page, PAGE, RWX) == 0);
    long sum = 0;
    for (int i = 0; i < 1000; i++) {
        emit(page + 64, i);
        sum += ((function)(page + 64))(2);
    }
    CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0);
    printf("stack %ld\n", sum);
}

// The code stores into an instruction that follows at once, on the same page.
static void next_instruction(void) {
    unsigned char *p = stress_map(PAGE, RWX);
    // mov %edi, 1f+1(%rip); nop; 1: mov $0, %eax; ret
    static const unsigned char code[] = {0x89, 0x3d, 0x02, 0x00, 0x00, 0x00, 0x90,
                                         0xb8, 0,    0,    0,    0,    0xc3};
    memcpy(p, code, sizeof(code));
    long sum = 0;
    for (int i = 0; i < 500; i++)
        sum += ((function)p)(i * 3);
    printf("next instruction %ld\n", sum);
    // A loop that rewrites its own body each time round:
    // xor %eax,%eax; 1: addl $1,2f+1(%rip); 2: add $imm,%eax (05 imm32); dec %edi; jnz 1b; ret
    static const unsigned char loop[] = {0x31, 0xc0, 0x83, 0x05, 0x01, 0x00, 0x00, 0x00, 0x01, 0x05,
                                         0,    0,    0,    0,    0xff, 0xcf, 0x75, 0xf0, 0xc3};
    memcpy(p + 256, loop, sizeof(loop));
    printf("loop body %d\n", ((function)(p + 256))(100));
}

static void toggling(void) {
    unsigned char *p = stress_map(PAGE, PROT_READ | PROT_WRITE);
    long sum = 0;
    for (int i = 0; i < 500; i++) {
        CHECK(mprotect(p, PAGE, PROT_READ | PROT_WRITE) == 0);
        emit(p + 128, i * 2);
        CHECK(mprotect(p, PAGE, PROT_READ | PROT_EXEC) == 0);
        sum += ((function)(p + 128))(0);
    }
    printf("toggling %ld\n", sum);
}

static void two_mappings(void) {
    int fd = memfd_create("code", 0);
    CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
    unsigned char *w = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned char *x = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    CHECK(w != MAP_FAILED && x != MAP_FAILED);
    long sum = 0;
    for (int i = 0; i < 500; i++) {
        emit(w + 32, i);
        sum += ((function)(x + 32))(5);
    }
    printf("two mappings %ld\n", sum);
    unsigned char code[16];
    sum = 0;
    for (int i = 0; i < 300; i++) {
        emit(code, i);
        CHECK(pwrite(fd, code, 8, 64) == 8);
        sum += ((function)(x + 64))(0);
    }
    printf("written to the file %ld\n", sum);
}

static void written_by_kernel(void) {
    unsigned char *p = stress_map(PAGE, RWX), code[16];
    int fds[2];
    long sum = 0;
    CHECK(pipe(fds) == 0);
    for (int i = 0; i < 300; i++) {
        emit(code, i);
        CHECK(write(fds[1], code, 8) == 8 && read(fds[0], p, 8) == 8);
        sum += ((function)p)(0);
        struct iovec local = {code, 8}, remote = {p, 8};
        emit(code, i * 5);
        CHECK(process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == 8);
        sum += ((function)p)(0);
    }
    printf("written by the kernel %ld\n", sum);
}

static void remapping(void) {
    long sum = 0;
    unsigned char *p = stress_map(PAGE, RWX);
    for (int i = 0; i < 300; i++) {
        CHECK(munmap(p, PAGE) == 0);
        unsigned char *q = mmap(p, PAGE, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        CHECK(q == p);
        emit(p, i);
        sum += ((function)p)(0);
        unsigned char *other = stress_map(PAGE, PROT_READ | PROT_WRITE);
        emit(other, i * 7);
        CHECK(mprotect(other, PAGE, PROT_READ | PROT_EXEC) == 0);
        CHECK(mremap(other, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p);
        sum += ((function)p)(0);
    }
    printf("remapping %ld\n", sum);
    sum = 0;
    for (int i = 0; i < 100; i++) {
        int fd = memfd_create("code", 0);
        unsigned char code[8];
        emit(code, i * 11);
        CHECK(pwrite(fd, code, 8, 0) == 8);
        CHECK(mmap(p, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == p);
        close(fd);
        sum += ((function)p)(0);
    }
    printf("replaced files %ld\n", sum);
    CHECK(madvise(p, PAGE, MADV_DONTNEED) == 0);
    CHECK(((function)p)(0) == 99 * 11);
}

int main(void) {
    write_and_call();
    on_the_stack();
    next_instruction();
    toggling();
    two_mappings();
    written_by_kernel();
    remapping();
    return 0;
}
