// What system calls do to target memory: checked before, marked after.
#ifndef QUERN_MEMCHECK_SYSCALLS_H
#define QUERN_MEMCHECK_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Somebody else who wants to know what memory system calls read and write.
struct syscalls_watcher {
    void (*read)(uint64_t address, size_t size);
    void (*write)(uint64_t address, size_t size);
};
// Tells what is read before the call, what has been written after it.
void syscalls_watch(const struct syscalls_watcher *, long number, const uint64_t arguments[6],
                    bool after, long result);

void syscalls_before(long number, const uint64_t arguments[6]);
void syscalls_after(long number, const uint64_t arguments[6], long result);

#endif
