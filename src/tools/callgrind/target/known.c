#include "tools/callgrind/target/known.h"

#include "tools/shared/instructions.h"

enum { PIECE_MOST = 60 }; // instructions

static uint32_t known; // registers, by bit
static unsigned piece; // instructions so far, as far as the block tells

void known_block(void) {
    known = 0;
    piece = 0;
}

// An opcode of the map without prefix, 0x0f00 added for the other one, and what follows it.
struct operation {
    unsigned opcode;
    bool has_operands, is_register;
    uint8_t width, field;   // the digit in the middle
    uint32_t middle, right; // registers as bits; right: 0 if it is memory
    bool is_relative;       // to the instruction pointer
};

static struct operation operation_of(const struct tool_insn *insn) {
    struct opcode_place place = insn_opcode(insn);
    struct operation it = {.width = place.width};
    unsigned at = place.at;
    if (at >= insn->size)
        return it;
    uint8_t rex = at && (insn->bytes[at - 1] & 0xf0) == 0x40 ? insn->bytes[at - 1] : 0;
    it.opcode = insn->bytes[at++];
    if (it.opcode == 0x0f && at < insn->size)
        it.opcode = 0x0f00 | insn->bytes[at++];
    it.right = 1u << ((it.opcode & 7) | (rex & 1) << 3);
    if (at >= insn->size)
        return it;
    uint8_t operands = insn->bytes[at];
    it.has_operands = true;
    it.field = operands >> 3 & 7;
    it.middle = 1u << (it.field | (rex & 4) << 1);
    it.is_register = operands >= 0xc0;
    it.is_relative = (operands & 0xc7) == 5;
    if (it.opcode < 0xb8 || it.opcode > 0xbf)
        it.right = it.is_register ? 1u << ((operands & 7) | (rex & 1) << 3) : 0;
    return it;
}

static void move(const struct operation *it, uint32_t to, uint32_t from) {
    bool copies = it->width == 8 && (known & from);
    known = copies ? known | to : known & ~to;
}

static void change(const struct operation *it) {
    switch (it->opcode) {
    case 0x8d: // lea
        known = it->is_relative && it->width == 8 ? known | it->middle : known & ~it->middle;
        return;
    case 0xb8 ... 0xbf: // mov of a number
        known = it->width >= 4 ? known | it->right : known & ~it->right;
        return;
    case 0xc7:
        known = it->width >= 4 ? known | it->right : known & ~it->right;
        return;
    case 0x89:
        move(it, it->right, it->middle);
        return;
    case 0x8b:
        move(it, it->middle, it->right);
        return;
    case 0x01: // arithmetic, the right operand changed
    case 0x09:
    case 0x21:
    case 0x29:
    case 0x31:
        known &= ~it->right;
        return;
    case 0x81:
    case 0x83:
        if (it->field != 7)
            known &= ~it->right;
        return;
    case 0x03: // the one in the middle changed
    case 0x0b:
    case 0x23:
    case 0x2b:
    case 0x33:
    case 0x63:
    case 0x0f40 ... 0x0f4f:
    case 0x0fb6:
    case 0x0fb7:
    case 0x0fbe:
    case 0x0fbf:
        known &= ~it->middle;
        return;
    case 0x58 ... 0x5f: // pop
        known &= ~it->right;
        return;
    case 0x38 ... 0x3d: // cmp, test, push, nop
    case 0x84:
    case 0x85:
    case 0xa8:
    case 0xa9:
    case 0x50 ... 0x57:
    case 0x68:
    case 0x6a:
    case 0x90:
    case 0x0f1f:
    case 0x0f10: // moves of vectors
    case 0x0f11:
    case 0x0f28:
    case 0x0f29:
    case 0x0f6f:
    case 0x0f7f:
        return;
    case 0x88: // moves to memory
    case 0xc6:
        if (it->is_register)
            known = 0;
        return;
    default:
        known = 0;
    }
}

void known_add(const struct tool_insn *insn) {
    struct operation it = operation_of(insn);
    if (insn->flow != TOOL_NEXT || ++piece == PIECE_MOST)
        known_block();
    else
        change(&it);
}

bool known_target(const struct tool_insn *insn) {
    struct operation it = operation_of(insn);
    return it.opcode == 0xff && (it.field == 2 || it.field == 4) && (it.right & known);
}

uint64_t known_beyond(const struct tool_insn *jump) {
    uint32_t before = known;
    uint64_t pc = jump->target, found = 0;
    for (unsigned i = piece; known && i < PIECE_MOST; i++) {
        struct tool_insn insn;
        uint8_t bytes[TOOL_INSN_BYTES];
        if (!tool_look(pc, &insn, bytes))
            break;
        if (insn.flow != TOOL_NEXT) {
            found = known_target(&insn) ? pc : 0;
            break;
        }
        struct operation it = operation_of(&insn);
        change(&it);
        pc += insn.size;
    }
    known = before;
    return found;
}
