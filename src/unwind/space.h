// The modules of an address space, seen from the walker. Internal to src/unwind.
//
// Looking up a module takes no lock, so walks may run in signal handlers. Modules and tables stay
// valid while the space is open (space.c).
#ifndef QUERN_UNWIND_SPACE_H
#define QUERN_UNWIND_SPACE_H

#include "unwind/table.h"

struct module {
    struct unwind_image image;
    _Atomic(struct unwind_table *) table; // NULL until first needed
    bool live;                            // under the lock
};

// The module at an address; NULL: none.
struct module *unwind_space_find(struct unwind_space *space, uint64_t address);

// A module's table, compiled if need be; NULL: no memory.
const struct unwind_table *unwind_space_table(struct unwind_space *space, struct module *module);

// The beginning of a space's state, for callers that read it often.
struct unwind_space_head {
    atomic_ulong generation;
};

// Rises whenever modules are removed.
static inline uint64_t unwind_space_generation(struct unwind_space *space) {
    struct unwind_space_head *head = (struct unwind_space_head *)space->state;
    return atomic_load_explicit(&head->generation, memory_order_acquire);
}

static inline bool module_is_text(const struct module *module, uint64_t address, uint64_t size) {
    const struct unwind_image *image = &module->image;
    return address >= image->text_start && address < image->text_end &&
           size <= image->text_end - address;
}

#endif
