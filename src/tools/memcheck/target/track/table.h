// How undefined bits pass through vector instructions: a class for each mnemonic, and what the
// class means. A constant table, for track.c and the files that follow vector instructions.
#ifndef QUERN_MEMCHECK_TRACK_TABLE_H
#define QUERN_MEMCHECK_TRACK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum vector_class {
    CLASS_NONE,
    CLASS_MOVE,        // data moves; performed on bits by a stub
    CLASS_MOVE_MASKED, // the same; the writemask steers
    CLASS_AND,
    CLASS_AND_NOT,
    CLASS_OR,
    CLASS_XOR,
    CLASS_TERNARY,
    CLASS_ADD, // integers, lane by lane
    CLASS_SUBTRACT,
    CLASS_EQUAL, // lanes that become ones or zeros, or bits of a mask
    CLASS_GREATER,
    CLASS_COMPARE, // by a predicate
    CLASS_MINIMUM_SIGNED,
    CLASS_MINIMUM_UNSIGNED,
    CLASS_MAXIMUM_SIGNED,
    CLASS_MAXIMUM_UNSIGNED,
    CLASS_LANES,    // a lane of the result depends on the same lanes of the sources
    CLASS_LOW_HALF, // the same, on the lower half of each lane
    CLASS_SCALAR,   // only the lowest lane is computed
    CLASS_CONVERT,  // lanes of another size, same index
    CLASS_CONVERT_SCALAR,
    CLASS_HORIZONTAL,  // neighbours in one source
    CLASS_PACK_SIGNED, // halves lanes with saturation
    CLASS_PACK_UNSIGNED,
    CLASS_WHOLE, // everything depends on everything
    CLASS_TEST,  // sets Z and C by and, and-not
    CLASS_TEST_SIGNS,
    CLASS_TEST_MASK, // into a mask: whether lanes have common ones
    CLASS_INTERSECT, // into a pair of masks: whether any lane of the other source is equal
    CLASS_COMPARE_FLAGS,
    CLASS_CLASSIFY, // lanes into a mask
    CLASS_STRING,
    CLASS_GATHER,
    CLASS_SCATTER,
    CLASS_MASKED_MOVE,
    CLASS_MASKED_BYTES, // maskmovdqu
    CLASS_ZERO_UPPER,
    CLASS_MASK_LOGIC,
    CLASS_MASK_SHIFT,
    CLASS_MASK_UNPACK,
    CLASS_MASK_ADD,
    CLASS_MASK_TEST,
    CLASS_MASK_MOVE,
};

// Which source steers.
enum vector_control {
    CONTROL_NONE,
    CONTROL_LAST,  // the last that is not a constant, lane by lane, unless there is a constant
    CONTROL_SIGN,  // the last, by the sign of its lanes
    CONTROL_COUNT, // the last, its lower 64 bits for all lanes, unless there is a constant
    CONTROL_FIRST, // the first source, unless there is a constant
    CONTROL_OWN,   // the destination
};

struct vector_rule {
    uint8_t class;
    uint8_t in_lane, out_lane; // bits
    uint8_t control;
    bool copies;      // nothing but a whole register, to or from memory or another one
    bool unary;       // of scalars: the first source lends its upper bits only
    bool keeps_upper; // of scalars: the destination keeps its upper bits
    bool accumulates; // the destination is a source as well (of instructions that name three)
};

// The rule of an instruction; of class CLASS_NONE if there is none.
struct vector_rule vector_rule(const char *name);
void vector_rules_start(void);

#endif
