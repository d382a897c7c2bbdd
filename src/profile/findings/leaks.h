// Leaks: the kinds of lost memory, what holds memory that is not lost, and one loss.
//
// Words
//   loss       the heap blocks of one kind that were allocated in one place
//   heuristic  a rule by which a pointer to the inside of a block counts as one to its first byte
//   holder     the place outside of the heap that holds a pointer to a reachable block
//
// The target finds losses (tools/memcheck/target/leaks), and so does the supervisor for programs
// that run natively (profile/heap/leak_graph.h). Both use these kinds. Nothing here allocates, so
// code inside the target may include it.
#ifndef QUERN_PROFILE_FINDINGS_LEAKS_H
#define QUERN_PROFILE_FINDINGS_LEAKS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Name in options and suppressions, words in the log, kind in Valgrind's XML.
#define LEAK_KIND_TABLE(X)                                                                         \
    X(DEFINITE, "definite", "definitely lost", "Leak_DefinitelyLost")                              \
    X(INDIRECT, "indirect", "indirectly lost", "Leak_IndirectlyLost")                              \
    X(POSSIBLE, "possible", "possibly lost", "Leak_PossiblyLost")                                  \
    X(REACHABLE, "reachable", "still reachable", "Leak_StillReachable")

enum leak_kind {
#define KIND(id, ...) LEAK_##id,
    LEAK_KIND_TABLE(KIND)
#undef KIND
        LEAK_KINDS,
};
enum { ALL_LEAK_KINDS = (1u << LEAK_KINDS) - 1 }; // as a set of bits 1 << enum leak_kind

// Name in options and in the log.
#define LEAK_HEURISTIC_TABLE(X)                                                                    \
    X(STDSTRING, "stdstring")                                                                      \
    X(LENGTH64, "length64")                                                                        \
    X(NEWARRAY, "newarray")                                                                        \
    X(INHERITANCE, "multipleinheritance")

enum leak_heuristic {
#define HEURISTIC(id, name) LEAK_##id,
    LEAK_HEURISTIC_TABLE(HEURISTIC)
#undef HEURISTIC
        LEAK_HEURISTICS,
};

enum loss_holder {
    HELD_BY_NONE,
    HELD_BY_REGISTER,
    HELD_BY_STACK,
    HELD_BY_DATA,
    HELD_BY_MAPPING,
    LOSS_HOLDERS,
};

// Part of a message (wire/findings.h): the layout is fixed.
struct loss {
    uint8_t kind;     // enum leak_kind
    uint8_t holder;   // enum loss_holder: what holds the nearest of the reachable blocks
    uint8_t is_quiet; // not to be shown: it is suppressed, or a delta search passes it over
    uint8_t reserved;
    uint32_t stack; // where the blocks were allocated: the number that the finder gave the stack
    uint64_t blocks, bytes, indirect_bytes;
    uint64_t old_blocks, old_bytes, old_indirect_bytes; // of the search before
    uint64_t cycle;          // blocks of the largest lost cycle in it; 0: none
    uint64_t holder_address; // of the pointer; of HELD_BY_REGISTER: the register's number
    uint64_t holder_pc;      // of HELD_BY_STACK: in the function whose frame it is
    int32_t holder_thread;
    uint32_t holder_steps; // pointers followed from the holder to the block
};

static inline const char *leak_kind_name(unsigned kind) {
    static const char *const names[LEAK_KINDS] = {
#define NAME(id, name, words, xml) name,
        LEAK_KIND_TABLE(NAME)
#undef NAME
    };
    return names[kind];
}

static inline const char *leak_kind_words(unsigned kind) {
    static const char *const all[LEAK_KINDS] = {
#define WORDS(id, name, words, xml) words,
        LEAK_KIND_TABLE(WORDS)
#undef WORDS
    };
    return all[kind];
}

static inline const char *leak_kind_xml(unsigned kind) {
    static const char *const names[LEAK_KINDS] = {
#define XML(id, name, words, xml) xml,
        LEAK_KIND_TABLE(XML)
#undef XML
    };
    return names[kind];
}

// The kind that XML calls so; LEAK_KINDS: none.
static inline unsigned leak_kind_of_xml(const char *xml) {
    unsigned kind = 0;
    while (kind < LEAK_KINDS && strcmp(leak_kind_xml(kind), xml) != 0)
        kind++;
    return kind;
}

static inline const char *leak_heuristic_name(unsigned heuristic) {
    static const char *const names[LEAK_HEURISTICS] = {
#define NAME(id, name) name,
        LEAK_HEURISTIC_TABLE(NAME)
#undef NAME
    };
    return names[heuristic];
}

// The set of bits that a list of names stands for. Commas divide the list; `all` may be in it.
// Unknown names add nothing, and neither does `none`.
static inline unsigned leak_names_in(const char *list, const char *name_of(unsigned),
                                     unsigned count) {
    unsigned set = 0;
    while (*list) {
        size_t length = strcspn(list, ",");
        if (length == strlen("all") && strncmp(list, "all", length) == 0)
            set = (1u << count) - 1;
        for (unsigned i = 0; i < count; i++)
            if (strlen(name_of(i)) == length && strncmp(list, name_of(i), length) == 0)
                set |= 1u << i;
        list += length + (list[length] == ',');
    }
    return set;
}

static inline unsigned leak_kinds_in(const char *list) {
    return leak_names_in(list, leak_kind_name, LEAK_KINDS);
}

static inline unsigned leak_heuristics_in(const char *list) {
    return leak_names_in(list, leak_heuristic_name, LEAK_HEURISTICS);
}

#endif
