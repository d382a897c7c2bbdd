// The ledger of the target's mappings: what is mapped where, with which rights, from which file.
//
// The engine chooses the addresses of the target's mappings itself and maps the target's code
// without the right to execute it, so the kernel's own list tells the truth neither about free
// places nor about rights. This ledger does. It records; it maps nothing.
//
// Words
//   range      [start, end), page aligned, with one set of attributes
//   neighbour  a range that begins where another ends
//   gap        the free space between a range and the next one
//
// Invariants (space_check verifies them)
//   ranges are not empty, are disjoint, and neighbours that could be one range are one range;
//   the tree is ordered by address and heap-ordered by node priority (a treap);
//   every node knows first address, last address, largest inner gap and size of its subtree.
//
// Operations take O(log n) for n ranges, plus O(log n) for each range inside the interval that they
// change. An operation that fails (-ENOMEM, -EINVAL) has changed nothing.
//
// Callers: any engine code, also in a signal handler or a vfork child, that holds the lock which
// guards the ledger; there is none in here. Nodes come from a pool mapped with mmap, never malloc.
#ifndef QUERN_ENGINE_SPACE_H
#define QUERN_ENGINE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define SPACE_PAGE 4096ul

enum space_tag {
    SPACE_PLAIN,  // mapped by the target with mmap, shmat, …
    SPACE_MODULE, // a segment of an executable, loader or library, bss included
    SPACE_STACK,  // the initial stack
    SPACE_GUARD,  // kept inaccessible by the engine on the target's behalf
    SPACE_BRK,    // the target's break area
    SPACE_VDSO,   // the copy of the vdso
    SPACE_ENGINE, // taken by the engine or the kernel: never the target's to use
};

enum space_flag {
    SPACE_SHARED = 1 << 0,    // MAP_SHARED; otherwise private
    SPACE_FILE = 1 << 1,      // dev, inode and offset name a file; otherwise anonymous
    SPACE_GROWSDOWN = 1 << 2, // MAP_GROWSDOWN
    SPACE_CODE = 1 << 3,      // translations of code in here exist: changes must discard them
    SPACE_NORESERVE = 1 << 4, // MAP_NORESERVE
    SPACE_HUGETLB = 1 << 5,   // MAP_HUGETLB
};

struct space_attributes {
    uint32_t prot;  // PROT_*, as the target sees it
    uint16_t flags; // enum space_flag
    uint16_t tag;   // enum space_tag
    uint64_t dev;   // of a file; 0 for anonymous memory, as the next two
    uint64_t inode;
    uint64_t offset; // in the file, of the first byte of the range
};

struct space_range {
    uintptr_t start;
    uintptr_t end;
    struct space_attributes attributes;
};

struct space_node;

struct space {
    struct space_node *root;
    struct space_node *unused; // free nodes, chained by their left link
    size_t unused_count;
    void *chunks; // of the pool, chained
    size_t count; // ranges in the ledger
    uint64_t seed;
};

// The rights with which the engine maps what the target maps with prot: target code is never
// executed in place, only read by the translator.
static inline int space_native_prot(int prot) {
    return prot & PROT_EXEC ? (prot & ~PROT_EXEC) | PROT_READ : prot;
}

void space_init(struct space *space);

// Gives the pool back; the ledger is then as after space_init. For tests.
void space_destroy(struct space *space);

// Records a mapping; replaces whatever was there.
int space_map(struct space *space, uintptr_t start, uintptr_t end,
              const struct space_attributes *attributes);

int space_unmap(struct space *space, uintptr_t start, uintptr_t end);

// The next two change what is mapped in [start, end) and pass over gaps.
int space_protect(struct space *space, uintptr_t start, uintptr_t end, uint32_t prot);
int space_mark(struct space *space, uintptr_t start, uintptr_t end, uint16_t set, uint16_t clear);

// Range that contains addr, or else the next one above; false if there is neither.
bool space_find(const struct space *space, uintptr_t addr, struct space_range *out);

// Steps through the ranges of an interval, clipped to it (their file offset too):
//     uintptr_t at = start;
//     while (space_next(space, &at, end, &range)) …
// The ledger may be changed between two steps.
bool space_next(const struct space *space, uintptr_t *at, uintptr_t end, struct space_range *out);

bool space_is_free(const struct space *space, uintptr_t start, uintptr_t end);

// True if every page of the interval is mapped.
bool space_is_mapped(const struct space *space, uintptr_t start, uintptr_t end);

// Lowest (top_down: highest) multiple of align, a power of two, at which size bytes are free inside
// [lo, hi); 0 if there is none. Size is rounded up to whole pages. Alignments above a page may cost
// more than O(log n) where many gaps are large enough but badly aligned.
uintptr_t space_pick(const struct space *space, size_t size, size_t align, uintptr_t lo,
                     uintptr_t hi, bool top_down);

// How much the target has mapped, as its limits count it: in all, and of that what is private and
// writable. Nothing that the engine has for itself is counted. The first takes O(1).
struct space_size {
    size_t all;
    size_t data;
};
struct space_size space_size(const struct space *space);
struct space_size space_size_in(const struct space *space, uintptr_t start, uintptr_t end);

// Verifies the invariants; NULL, or a sentence that says which one is broken.
const char *space_check(const struct space *space);

#endif
