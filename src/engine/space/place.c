#include "engine/space/place.h"

#include "engine/layout.h"

// Apart from the modules: a program that runs past its data must not hit the loader's. Below it
// lies what natively is always free: SBCL wants the 172 MiB from 0x50000000 on.
#define PROGRAM_START 0x5c000000ul

// Where the kernel looks for places with 31 bits.
#define BITS31_START 0x40000000ul
#define BITS31_END   0x80000000ul

// Below stack and mappings, and where sanitizers expect it.
#define BREAK_START 0x550000000000ul

// Valgrind's choices. Data stops where Valgrind itself begins.
#define PIECE_PROGRAM 0x108000ul
#define PIECE_START   0x4000000ul
#define PIECE_END     0x58000000ul
// Below the end of the high area for any tool.
#define PIECE_STACK_END (0x29efff001000ul + PLACE_PATH_ROOM)

#define BREAK_ROOM       (64ul << 30)
#define PIECE_BREAK_ROOM (8ul << 20)

struct area {
    uintptr_t lo, hi;
    bool top_down;
};

// The first that has room is taken.
struct rule {
    struct area first, second;
};

#define HIGH_DOWN                                                                                  \
    { HIGH_START, HIGH_END, true }
#define HIGH_UP                                                                                    \
    { HIGH_START, HIGH_END, false }

// For what is larger than the high area.
#define MIDDLE_DOWN                                                                                \
    { JUMP_TABLE_END, NON_TABLE_END, true }

static const struct rule apart[] = {
    [PLACE_PROGRAM] = {{PROGRAM_START, LOW_END, false}, HIGH_DOWN},
    [PLACE_MODULE] = {{LOW_START, LOW_END, true}, HIGH_DOWN},
    [PLACE_LOW] = {{BITS31_START, BITS31_END, false}, {LOW_START, BITS31_START, true}},
    [PLACE_DATA] = {HIGH_DOWN, MIDDLE_DOWN},
    [PLACE_BREAK] = {{BREAK_START, HIGH_END, false}, HIGH_UP},
    [PLACE_STACK] = {HIGH_DOWN},
};

static const struct rule in_one_piece[] = {
    [PLACE_PROGRAM] = {{PIECE_PROGRAM, LOW_END, false}, HIGH_UP},
    [PLACE_MODULE] = {{PIECE_START, LOW_END, false}, HIGH_UP},
    [PLACE_LOW] = {{PIECE_START, LOW_END, false}, {LOW_START, BITS31_END, false}},
    [PLACE_DATA] = {{PIECE_START, PIECE_END, false}, HIGH_UP},
    [PLACE_BREAK] = {{PIECE_START, PIECE_END, false}, HIGH_UP},
    [PLACE_STACK] = {{HIGH_START, PIECE_STACK_END, true}},
};

static const struct rule *rules = apart;
static uintptr_t high_end = HIGH_END;

void place_below(uintptr_t end) {
    if (end < high_end)
        high_end = end;
}

void place_in_one_piece(void) {
    rules = in_one_piece;
}

bool is_in_one_piece(void) {
    return rules == in_one_piece;
}

static uintptr_t pick_in(const struct space *space, const struct area *area, size_t size,
                         size_t align) {
    uintptr_t hi = area->hi < high_end ? area->hi : high_end;
    return area->lo < hi ? space_pick(space, size, align, area->lo, hi, area->top_down) : 0;
}

uintptr_t place_pick(const struct space *space, enum place place, size_t size, size_t align) {
    const struct rule *rule = &rules[place];
    uintptr_t at = pick_in(space, &rule->first, size, align);
    return at ? at : pick_in(space, &rule->second, size, align);
}

uintptr_t place_pick_below(const struct space *space, enum place place, size_t size, size_t align,
                           uintptr_t end) {
    struct area first = rules[place].first, second = rules[place].second;
    uintptr_t at = 0;
    // The second area lies above the first and is tried after it.
    if (end < first.hi) {
        first.hi = end;
        at = pick_in(space, &first, size, align);
    } else if (end < second.hi) {
        second.hi = end;
    }
    return at ? at : pick_in(space, &second, size, align);
}

size_t place_break_room(void) {
    return is_in_one_piece() ? PIECE_BREAK_ROOM : BREAK_ROOM;
}
