// massif's state in the supervisor, for massif.c and xtree.c.
#ifndef QUERN_TOOLS_HEAP_MASSIF_H
#define QUERN_TOOLS_HEAP_MASSIF_H

#include "profile/heap/massif.h"
#include "tools/shared/supervisor/recorded/recorded.h"

struct massif_state {
    struct recorded recorded;
    char *description; // the tool's options as given; NULL when there were none
    struct massif_options options;
    double threshold;
    const char *xtree_memory; // a file for the heap by place (--xtree-memory-file); NULL: none
    bool xtree_compress;      // names in it are written once
};

// The process has ended: writes that file, if it is wanted.
void massif_write_xtree(struct recorded_process *process);

#endif
