// Memory that the program itself maps, and names that it gives its threads.
//
// glibc's allocator maps memory by calls inside libc that cannot be replaced. Other allocators call
// mmap like any code; the recorder recognises them by the library that they call from.
#include "recorder/recorder.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// By their names in the object file: what C calls mmap may be mmap64 there.
EXPORT void *regions_mmap(void *, size_t, int, int, int, off_t) __asm__("mmap");
EXPORT void *regions_mmap64(void *, size_t, int, int, int, off_t) __asm__("mmap64");
EXPORT int munmap(void *address, size_t size);
EXPORT void *mremap(void *address, size_t old_size, size_t size, int flags, ...);
EXPORT int brk(void *end);
EXPORT void *sbrk(intptr_t increment);
EXPORT int pthread_setname_np(pthread_t thread, const char *name);
EXPORT int prctl(int option, ...);

#define PAGE 4096ul

// Whether what the caller of an exported function does is to be recorded.
#define IS_WANTED()                                                                                \
    (recorder_on() && !families_is_inside() &&                                                     \
     !modules_is_allocator((uint64_t)__builtin_return_address(0)) &&                               \
     !modules_is_own((uint64_t)__builtin_return_address(0)))

static size_t whole_pages(size_t size) {
    return (size + PAGE - 1) & ~(PAGE - 1);
}

static void *real_mmap(void *address, size_t size, int protection, int flags, int fd,
                       off_t offset) {
    recorder_resolved();
    return recorder_next.mmap
               ? recorder_next.mmap(address, size, protection, flags, fd, offset)
               : (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

static void *mapped(void *memory, size_t size, int flags) {
    if (memory != MAP_FAILED)
        record_mapped(memory, whole_pages(size),
                      flags & MAP_ANONYMOUS ? WIRE_HEAP_ANONYMOUS : WIRE_HEAP_FILE);
    return memory;
}

void *regions_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    bool wanted = IS_WANTED();
    void *memory = real_mmap(address, size, protection, flags, fd, offset);
    return wanted ? mapped(memory, size, flags) : memory;
}

void *regions_mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    bool wanted = IS_WANTED();
    void *memory = real_mmap(address, size, protection, flags, fd, offset);
    return wanted ? mapped(memory, size, flags) : memory;
}

// What the kernel would refuse is not recorded; it refuses nothing else.
int munmap(void *address, size_t size) {
    if (IS_WANTED() && (uint64_t)address % PAGE == 0 && size)
        record_unmapped(address, whole_pages(size));
    recorder_resolved();
    return recorder_next.munmap ? recorder_next.munmap(address, size)
                                : (int)syscall(SYS_munmap, address, size);
}

void *mremap(void *address, size_t old_size, size_t size, int flags, ...) {
    bool wanted = IS_WANTED();
    va_list rest;
    va_start(rest, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    recorder_resolved();
    if (wanted)
        record_unmapped(address, whole_pages(old_size));
    void *memory = recorder_next.mremap
                       ? recorder_next.mremap(address, old_size, size, flags, to)
                       : (void *)syscall(SYS_mremap, address, old_size, size, flags, to);
    if (wanted && memory == MAP_FAILED)
        record_mapped(address, whole_pages(old_size), WIRE_HEAP_MOVED);
    else if (wanted)
        record_mapped(memory, whole_pages(size), WIRE_HEAP_MOVED);
    return memory;
}

// ---- the break ----

static void break_moved(char *from, char *to) {
    if (to > from)
        record_mapped(from, (size_t)(to - from), WIRE_HEAP_BREAK);
}

// Whoever comes before the real ones are known gets no more memory this way.
static bool has_no_break(void) {
    recorder_resolved();
    if (recorder_next.brk && recorder_next.sbrk)
        return false;
    errno = ENOMEM;
    return true;
}

int brk(void *end) {
    bool wanted = IS_WANTED();
    if (has_no_break())
        return -1;
    char *from = wanted ? recorder_next.sbrk(0) : NULL;
    if (wanted && (char *)end < from)
        record_unmapped(end, (size_t)(from - (char *)end));
    int result = recorder_next.brk(end);
    if (wanted && result == 0)
        break_moved(from, end);
    return result;
}

void *sbrk(intptr_t increment) {
    bool wanted = IS_WANTED() && increment;
    if (has_no_break())
        return (void *)-1;
    if (wanted && increment < 0)
        record_unmapped((char *)recorder_next.sbrk(0) + increment, (size_t)-increment);
    void *from = recorder_next.sbrk(increment);
    if (wanted && increment > 0 && from != (void *)-1)
        break_moved(from, (char *)from + increment);
    return from;
}

// ---- names ----

int pthread_setname_np(pthread_t thread, const char *name) {
    recorder_ready();
    int error = recorder_next.setname(thread, name);
    if (!error && recorder_on())
        record_name(thread, name);
    return error;
}

int prctl(int option, ...) {
    unsigned long words[4];
    va_list rest;
    va_start(rest, option);
    for (int i = 0; i < 4; i++)
        words[i] = va_arg(rest, unsigned long);
    va_end(rest);
    recorder_ready();
    if (requests_link(option, words[0]))
        return 0;
    int result = recorder_next.prctl
                     ? recorder_next.prctl(option, words[0], words[1], words[2], words[3])
                     : (int)syscall(SYS_prctl, option, words[0], words[1], words[2], words[3]);
    if (option == PR_SET_NAME && result == 0 && recorder_on())
        record_name(pthread_self(), (const char *)words[0]);
    return result;
}
