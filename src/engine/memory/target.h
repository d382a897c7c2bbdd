// Reads and writes target memory that may not be there. A fault is caught and becomes -EFAULT.
//
// A page with translated code is read-only natively. A write to it makes the engine forget that
// code first. The tool's shadow memory does not change.
#ifndef QUERN_ENGINE_MEMORY_TARGET_H
#define QUERN_ENGINE_MEMORY_TARGET_H

#include <stddef.h>
#include <stdint.h>

// 0 or -EFAULT. Nothing is said about what was copied before a fault.
long target_read(void *to, uint64_t from, size_t size);
long target_write(uint64_t to, const void *from, size_t size);
// Copies a string into the buffer, cut to size, always terminated. Its length, or -EFAULT.
long target_string(char *to, uint64_t from, size_t size);

#endif
