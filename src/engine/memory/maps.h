// What the kernel says of the target's mappings (base/maps.h), and /proc/self/maps as the target
// should see it.
#ifndef QUERN_ENGINE_MEMORY_MAPS_H
#define QUERN_ENGINE_MEMORY_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Calls fn for each piece of a file that is mapped inside [start, end) and executable for the
// target. The kernel's lines alone do not tell: natively nothing is executable, so it joins a
// file's code with its neighbours.
struct mapped_code {
    uint64_t start, end, offset;
    const char *path;
};
void maps_for_each_code(uint64_t start, uint64_t end,
                        void (*fn)(const struct mapped_code *, void *), void *argument);

// A memory file with the target's own mappings in the form of /proc/self/maps; a descriptor or
// -errno. Whatever stands for a file of /proc has this name.
#define MAPS_FILE "quern-maps"
int maps_of_target(void);

#endif
