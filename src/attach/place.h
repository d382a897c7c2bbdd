// Where in a running process a library can be loaded from: the functions that do it, the cave, a
// place for the scratch (load.h). While the process runs. Supervisor context.
#ifndef QUERN_ATTACH_PLACE_H
#define QUERN_ATTACH_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "attach/borrow.h"

enum place_function {
    PLACE_PTHREAD_CREATE,
    PLACE_PTHREAD_DETACH,
    PLACE_DLOPEN,
    PLACE_DLSYM,
    PLACE_DLERROR,
    PLACE_FUNCTIONS
};

struct place {
    uint64_t functions[PLACE_FUNCTIONS];
    uint64_t cave, scratch;
    struct borrow_map map;
};

// Needs a cave of this size. NULL, or why there is no place, to be freed.
char *place_find(struct place *place, int pid, size_t cave_size);
void place_free(struct place *place);

#endif
