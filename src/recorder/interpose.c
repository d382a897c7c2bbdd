// Replaces the malloc family.
#include "recorder/recorder.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

EXPORT void *malloc(size_t size);
EXPORT void *calloc(size_t count, size_t size);
EXPORT void *realloc(void *block, size_t size);
EXPORT void *reallocarray(void *block, size_t count, size_t size);
EXPORT void free(void *block);
EXPORT void *memalign(size_t alignment, size_t size);
EXPORT int posix_memalign(void **block, size_t alignment, size_t size);
EXPORT void *aligned_alloc(size_t alignment, size_t size);
EXPORT void *valloc(size_t size);
EXPORT void *pvalloc(size_t size);
EXPORT int dlclose(void *handle);
EXPORT void _exit(int status) __attribute__((noreturn));
EXPORT void _Exit(int status) __attribute__((noreturn));

static inline void *allocated(void *block, size_t size, const uint64_t *frame) {
    if (block && recorder_preloaded_on())
        record_allocated(block, size, frame);
    return block;
}

void *malloc(size_t size) {
    if (UNLIKELY(!recorder_ready()))
        return recorder_early(size, 16);
    return allocated(recorder_next.malloc(size), size, RECORDER_FRAME);
}

void *calloc(size_t count, size_t size) {
    if (UNLIKELY(!recorder_ready())) {
        // Fresh memory, never used before.
        return size && count > SIZE_MAX / size ? NULL : recorder_early(count * size, 16);
    }
    return allocated(recorder_next.calloc(count, size), count * size, RECORDER_FRAME);
}

void free(void *block) {
    if (!block || UNLIKELY(recorder_is_early(block)))
        return;
    // Whoever frees has allocated before, so the real functions are known.
    if (recorder_preloaded_on() && !record_is_deleting(block))
        record_freed(block);
    recorder_next.free(block);
}

static void *move_early(void *block, size_t size) {
    size_t old = ((size_t *)block)[-1];
    void *moved = malloc(size);
    if (moved)
        memcpy(moved, block, old < size ? old : size);
    return moved;
}

void *realloc(void *block, size_t size) {
    if (!block)
        return malloc(size);
    if (UNLIKELY(recorder_is_early(block)))
        return move_early(block, size);
    if (!recorder_preloaded_on())
        return recorder_next.realloc(block, size);
    size_t usable = recorder_next.malloc_usable_size ? recorder_next.malloc_usable_size(block) : 0;
    bool began = record_resize_began(block);
    void *moved = recorder_next.realloc(block, size);
    // realloc(block, 0) frees in some allocators and allocates in others.
    if (!moved && size == 0)
        record_resize_released(began);
    else
        record_resize_ended(began, block, usable, moved, size, RECORDER_FRAME);
    return moved;
}

// Not the real one: that may end in our realloc, or may not.
void *reallocarray(void *block, size_t count, size_t size) {
    if (size && count > SIZE_MAX / size) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, count * size);
}

void *memalign(size_t alignment, size_t size) {
    if (UNLIKELY(!recorder_ready()))
        return recorder_early(size, alignment);
    return allocated(recorder_next.memalign(alignment, size), size, RECORDER_FRAME);
}

void *aligned_alloc(size_t alignment, size_t size) {
    if (UNLIKELY(!recorder_ready()))
        return recorder_early(size, alignment);
    return allocated(recorder_next.aligned_alloc(alignment, size), size, RECORDER_FRAME);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (UNLIKELY(!recorder_ready())) {
        *block = recorder_early(size, alignment);
        return *block ? 0 : ENOMEM;
    }
    int error = recorder_next.posix_memalign(block, alignment, size);
    if (!error)
        allocated(*block, size, RECORDER_FRAME);
    return error;
}

void *valloc(size_t size) {
    return memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

void *pvalloc(size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > SIZE_MAX - page) {
        errno = ENOMEM;
        return NULL;
    }
    return memalign(page, (size + page - 1) & ~(page - 1));
}

// What is unloaded must not be walked through any more. What is loaded is noticed when a stack
// leads there; to stand in for dlopen would change whose search path it uses.
int dlclose(void *handle) {
    if (UNLIKELY(!recorder_ready()))
        return -1;
    int result = recorder_next.dlclose(handle);
    if (recorder_on())
        modules_refresh();
    return result;
}

// exit() ends inside libc; this is for those who do without handlers.
void _exit(int status) {
    recorder_ready();
    recorder_ending();
    if (recorder_next.exit)
        recorder_next.exit(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

void _Exit(int status) {
    _exit(status);
}
