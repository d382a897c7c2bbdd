// Memory straight from the kernel. Internal to src/unwind.
//
// It uses raw system calls, because the recorder interposes mmap and malloc and must not see the
// unwinder's own calls. In a signal handler of the target, the unwinder must not change errno.
#ifndef QUERN_UNWIND_PAGES_H
#define QUERN_UNWIND_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static inline long pages_syscall(long number, long a, long b, long c, long d) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = -1;
    register long r9 __asm__("r9") = 0;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

// Zeroed pages, committed when touched; NULL when there are none.
static inline void *pages_map(size_t size) {
    long result = pages_syscall(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    return result < 0 && result > -4096 ? NULL : (void *)result;
}

static inline void pages_unmap(void *pages, size_t size) {
    pages_syscall(SYS_munmap, (long)pages, (long)size, 0, 0);
}

static inline void pages_yield(void) {
    pages_syscall(SYS_sched_yield, 0, 0, 0, 0);
}

#endif
