#include <errno.h>

#include "engine/memory/memory.h"
#include "engine/memory/target.h"
#include "engine/enter.h"

long target_read(void *to, uint64_t from, size_t size) {
    return copy_guarded(to, (const void *)from, size);
}

long target_write(uint64_t to, const void *from, size_t size) {
    if (copy_guarded((void *)to, from, size) == 0)
        return 0;
    // Pages that hold translated code are read-only natively.
    for (uint64_t page = to & ~4095ul; page < to + size; page += 4096)
        memory_write_fault(page);
    return copy_guarded((void *)to, from, size);
}

long target_string(char *to, uint64_t from, size_t size) {
    size_t length = 0;
    while (length + 1 < size) {
        // Not beyond the page: the string may end before an unmapped one.
        size_t step = 4096 - ((from + length) & 4095);
        if (step > size - 1 - length)
            step = size - 1 - length;
        if (copy_guarded(to + length, (const void *)(from + length), step))
            return -EFAULT;
        for (size_t end = length + step; length < end; length++)
            if (!to[length])
                return length;
    }
    to[length] = 0;
    return length;
}
