// A copy of the writable memory of a running process, with its mappings and the registers of its
// threads. The process stands still only while the copy is made.
//
// Words:
//   run      pages in a row that were touched, and their copy
//   touched  a page that the process has in memory or in swap. All others hold zeros (anonymous
//            memory) or what their file holds
//
// Invariants: mappings and runs rise by address and do not overlap. Devices, Quern's own shared
// memory and mappings above SNAPSHOT_MAPPING_MOST are not copied.
//
// Use: snapshot_prepare while the process runs, snapshot_take as often as need be, snapshot_free.
// Supervisor context.
#ifndef QUERN_ATTACH_SNAPSHOT_H
#define QUERN_ATTACH_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "attach/freeze.h"
#include "base/maps.h"

#define SNAPSHOT_PAGE         4096ull
#define SNAPSHOT_MAPPING_MOST (256ull << 30)

struct snapshot_run {
    uint64_t start, end;
    const uint8_t *bytes;
    bool is_swapped;
};

struct snapshot {
    int pid;
    struct maps_mapping *mappings; // `line` is NULL; paths belong to the snapshot
    size_t mapping_count;
    struct snapshot_run *runs;
    size_t run_count;
    struct freeze threads; // as they were; they run again
    uint64_t pause;        // nanoseconds that the process stood still
    bool is_partial;       // a mapping was too large to be copied
    struct snapshot_buffer {
        uint8_t *bytes;
        size_t size, used;
    } * buffers;
    size_t buffer_count;
};

// Gets memory for the copy. NULL, or why there is none: the caller frees the text.
char *snapshot_prepare(struct snapshot *snapshot, int pid);
// Looks at the process while it stands still. False: this is not the moment for a copy.
typedef bool snapshot_look(void *context);
enum snapshot_outcome { SNAPSHOT_TAKEN, SNAPSHOT_NOT_NOW, SNAPSHOT_FAILED };
// Stops the process, copies, and lets it go on. SNAPSHOT_FAILED with errno: it cannot be stopped
// or read.
enum snapshot_outcome snapshot_take(struct snapshot *snapshot, snapshot_look *look, void *context);
void snapshot_free(struct snapshot *snapshot);

// ---- looking at the copy ----

const struct maps_mapping *snapshot_mapping(const struct snapshot *snapshot, uint64_t address);
// Reads from the copy; pages that were not touched read as zeros. False: part of it is not in
// writable memory.
bool snapshot_read(const struct snapshot *snapshot, uint64_t address, void *to, size_t size);
bool snapshot_word(const struct snapshot *snapshot, uint64_t address, uint64_t *word);
// The number of the first run that ends after the address; run_count: none.
size_t snapshot_run_after(const struct snapshot *snapshot, uint64_t address);
// Bytes of [start, end) that lie in pages that are in memory.
uint64_t snapshot_resident(const struct snapshot *snapshot, uint64_t start, uint64_t end);

#endif
