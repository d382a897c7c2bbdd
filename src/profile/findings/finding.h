// Findings: what a tool found wrong with the target's use of memory.
//
// Words, from the instruction to the log
//   finding    one thing that is wrong, as it was found: facts, stacks, names
//   context    all findings that are equal: same kind and detail, same innermost callers. The first
//              finding of a context is shown, the others are counted
//   result     a finding or loss in the form that other programs read (report/results/results.h)
// A loss (leaks.h) is the finding of a search for leaks.
//
// The target fills in the facts, the wire carries them as they are (wire/finding.h), and reports
// read them (report/findings). Nothing here allocates, so code inside the target may include it.
#ifndef QUERN_PROFILE_FINDINGS_FINDING_H
#define QUERN_PROFILE_FINDINGS_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Kind in Valgrind's XML, kind in suppressions, whether the size follows there ("Addr4").
#define FINDING_KIND_TABLE(X)                                                                      \
    X(READ, "InvalidRead", "Addr", true)                                                           \
    X(WRITE, "InvalidWrite", "Addr", true)                                                         \
    X(CONDITION, "UninitCondition", "Cond", false)                                                 \
    X(VALUE, "UninitValue", "Value", true)                                                         \
    X(JUMP, "InvalidJump", "Jump", false)                                                          \
    X(PARAMETER, "SyscallParam", "Param", false)                                                   \
    X(CLIENT, "ClientCheck", "User", false)                                                        \
    X(FREE, "InvalidFree", "Free", false)                                                          \
    X(MISMATCHED_FREE, "MismatchedFree", "Free", false)                                            \
    X(OVERLAP, "Overlap", "Overlap", false)                                                        \
    X(FISHY, "FishyValue", "FishyValue", false)                                                    \
    X(POOL, "InvalidMemPool", "Mempool", false)                                                    \
    X(CORE, "CoreMemError", "CoreMem", false)                                                      \
    X(RESIZE_TO_ZERO, "ReallocSizeZero", "ReallocZero", false)                                     \
    X(ALIGNMENT, "InvalidAlignment", "BadAlign", false)                                            \
    X(SIZE_ALIGNMENT, "InvalidSizeAndAlignment", "BadAlign", false)                                \
    X(ZERO_SIZE, "InvalidSize", "UnsafeZeroSize", false)                                           \
    X(SIZE_MISMATCH, "MismatchedAllocateDeallocateSize", "SizeMismatch", false)                    \
    X(ALIGNMENT_MISMATCH, "MismatchedAllocateDeallocateAlignment", "AlignMismatch", false)         \
    X(RACE, "Race", "Race", false)                                                                 \
    X(THREAD, "ThreadCreated", "ThreadCreated", false)                                             \
    X(UNLOCK_UNLOCKED, "UnlockUnlocked", "UnlockUnlocked", false)                                  \
    X(UNLOCK_FOREIGN, "UnlockForeign", "UnlockForeign", false)                                     \
    X(PTHREAD, "PthAPIerror", "PthAPIerror", false)                                                \
    X(LOCK_ORDER, "LockOrder", "LockOrder", false)                                                 \
    X(MISUSE, "Misc", "Misc", false)                                                               \
    X(CLOSED_AGAIN, "FdBadClose", "FdBadClose", false)                                             \
    X(NOT_OPEN, "FdBadUse", "FdBadUse", false)                                                     \
    X(LEFT_OPEN, "FdNotClosed", "FdNotClosed", false)

// From RACE to MISUSE: of the detectors of races. The last three are the core's own, of every tool:
// suppressions name them CoreError.
enum finding_kind {
#define KIND(id, ...) FINDING_##id,
    FINDING_KIND_TABLE(KIND)
#undef KIND
        FINDING_KINDS,
};

static inline bool finding_kind_is_about_threads(unsigned kind) {
    return kind >= FINDING_RACE && kind <= FINDING_MISUSE;
}

static inline bool finding_kind_is_core(unsigned kind) {
    return kind >= FINDING_CLOSED_AGAIN && kind < FINDING_KINDS;
}

// What is wrong with the bytes of FINDING_PARAMETER (all of these) and FINDING_CLIENT (the last
// two).
enum finding_fault { FAULT_REGISTER, FAULT_UNADDRESSABLE, FAULT_UNDEFINED };
// Of the two accesses of FINDING_RACE: the one that was found, and the one before. The stack of the
// latter is STACK_OF_ORIGIN, its thread the value, its size `reserved`; the names are the locks
// that each held. CHANGES: by one instruction that reads as well.
enum { RACE_WRITES = 1, RACE_WROTE = 2, RACE_CHANGES = 4, RACE_CHANGED = 8 };

// Where the address lies.
enum finding_place {
    PLACE_NONE,    // the finding is about no address
    PLACE_UNKNOWN, // the target does not know; the supervisor may: data, code
    PLACE_BLOCK,   // in a heap block, or around it
    PLACE_FREED,
    PLACE_CLIENT, // in a block that the target described itself; the second name is its description
    PLACE_STACK,
    PLACE_BRK,
    PLACE_ANONYMOUS,
    PLACE_FILE, // the second name is its path
    PLACE_SHARED,
    PLACES,
};

// What made an undefined value.
enum finding_origin {
    MADE_UNKNOWN,
    MADE_BY_HEAP,
    MADE_BY_STACK,
    MADE_BY_CLIENT,
    MADE_BY_SIGNAL,
    MADE_KINDS
};

enum { STACK_OF_FINDING, STACK_OF_MAKING, STACK_OF_FREEING, STACK_OF_ORIGIN, FINDING_STACKS };
enum { FINDING_STACK_MAX = 1500, THREAD_NAME = 16 };

// Part of a message: the layout is fixed.
struct finding_facts {
    uint8_t kind; // enum finding_kind
    // enum finding_fault; of FINDING_OVERLAP: whether the size is known; of descriptors: whether it
    // was ever open; of FINDING_RACE: RACE_WRITES and so on
    uint8_t fault;
    uint8_t place;                 // enum finding_place, of the address
    uint8_t origin;                // enum finding_origin
    int32_t thread;                // from 1
    char thread_name[THREAD_NAME]; // terminated; empty: it has none of its own
    uint64_t address;
    uint64_t size; // of descriptors: whether it was inherited
    // Of descriptors: the number; FINDING_FISHY: the argument; FINDING_OVERLAP: the source; about
    // FINDING_LOCK_ORDER: the other lock; about
    // an alignment: the alignment, of FINDING_ALIGNMENT_MISMATCH the block's (the other one is the
    // size; 0: the usual one)
    int64_t value;
    uint64_t start, end; // of the block, brk area or mapping; of PLACE_STACK the frame's end
    int32_t place_thread, frame; // PLACE_STACK; frame -1: not known
    uint64_t frame_pc;
    int64_t below; // bytes below the stack pointer; 0: not below
    uint32_t prot; // of a mapping
    uint32_t reserved;
};

struct finding_stack {
    const uint64_t *pcs; // innermost first; those after the first are return addresses
    size_t count;
};

// Stacks and names belong to whoever made it.
struct finding {
    struct finding_facts facts;
    struct finding_stack stacks[FINDING_STACKS];
    const char *names[2]; // a function or system call, and its argument; "": none
};

static inline const char *finding_kind_xml(unsigned kind) {
    static const char *const names[FINDING_KINDS] = {
#define XML(id, xml, suppression, is_sized) xml,
        FINDING_KIND_TABLE(XML)
#undef XML
    };
    return names[kind];
}

// `*is_sized`: the size of the access belongs behind it.
static inline const char *finding_kind_suppression(unsigned kind, bool *is_sized) {
    static const struct {
        const char *name;
        bool is_sized;
    } kinds[FINDING_KINDS] = {
#define SUPPRESSION(id, xml, suppression, is_sized) {suppression, is_sized},
        FINDING_KIND_TABLE(SUPPRESSION)
#undef SUPPRESSION
    };
    *is_sized = kinds[kind].is_sized;
    return kinds[kind].name;
}

// The kind that XML calls so; FINDING_KINDS: none.
static inline unsigned finding_kind_of_xml(const char *xml) {
    unsigned kind = 0;
    while (kind < FINDING_KINDS && strcmp(finding_kind_xml(kind), xml) != 0)
        kind++;
    return kind;
}

#endif
