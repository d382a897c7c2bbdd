#include <sys/mman.h>

#include "base/hash.h"
#include "tools/bbv/target/target.h"

enum { SLOTS = 2 * BLOCKS };

struct block *bbv_blocks;

static uint32_t *slots; // indexes of blocks by the hash of their address; 0: free
static uint32_t block_count = 1;
static uint32_t last_number;

void bbv_blocks_start(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    bbv_blocks = mmap(NULL, BLOCKS * sizeof *bbv_blocks, PROT_READ | PROT_WRITE, flags, -1, 0);
    slots = mmap(NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (bbv_blocks == MAP_FAILED || slots == MAP_FAILED)
        tool_give_up("exp-bbv: no room for its blocks: is the address space limited (ulimit -v)?");
    bbv_blocks[0].number = UINT32_MAX;
}

// ---- how Valgrind divides code -----------------------------------------------------------------

static bool is_prefix(uint8_t byte) {
    switch (byte) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64 ... 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
    case 0x40 ... 0x4f:
        return true;
    default:
        return false;
    }
}

static bool has_prefix(const struct tool_insn *insn, uint8_t prefix) {
    for (unsigned i = 0; i < insn->size && is_prefix(insn->bytes[i]); i++)
        if (insn->bytes[i] == prefix)
            return true;
    return false;
}

static enum instruction_kind kind_of_repeated(uint8_t opcode) {
    switch (opcode) {
    case 0xa6: // cmps
    case 0xa7:
    case 0xae: // scas
    case 0xaf:
        return KIND_SEARCH;
    case 0xac: // lods
    case 0xad:
        return KIND_LODS;
    default:
        return KIND_REP;
    }
}

enum instruction_kind bbv_blocks_kind(const struct tool_insn *insn) {
    unsigned at = 0;
    while (at + 1 < insn->size && is_prefix(insn->bytes[at]))
        at++;
    uint8_t opcode = insn->bytes[at];
    uint8_t second = at + 1 < insn->size ? insn->bytes[at + 1] : 0;
    uint8_t third = at + 2 < insn->size ? insn->bytes[at + 2] : 0;
    if (insn->repeats)
        return kind_of_repeated(opcode);
    if (opcode >= 0xe0 && opcode <= 0xe3) // loop, jrcxz: the block goes on if they do not jump
        return KIND_PLAIN;
    if (insn->flow != TOOL_NEXT)
        return KIND_END;
    if (opcode == 0x90 && has_prefix(insn, 0xf3)) // pause
        return KIND_END;
    if (opcode == 0xcc || opcode == 0xf4) // int3, hlt
        return KIND_END;
    if (opcode == 0x0f && second == 0x0b) // ud2
        return KIND_END;
    if (opcode == 0x0f && second == 0xae && (third >> 3 & 7) == 7 && third < 0xc0) // clflush
        return KIND_END;
    if (opcode == 0xd9 && (second >> 3 & 7) == 5 && second < 0xc0)
        return KIND_FLDCW;
    return KIND_PLAIN;
}

// The request of a client is one instruction for Valgrind, which ends the block.
enum { REQUEST_SIZE = 19, REQUEST_PARTS = 4 };

static bool is_request(uint64_t pc) {
    static const uint8_t distances[REQUEST_PARTS] = {3, 13, 61, 51};
    for (unsigned i = 0; i < REQUEST_PARTS; i++) {
        struct tool_insn insn;
        uint8_t bytes[TOOL_INSN_BYTES];
        if (!tool_look(pc + 4 * i, &insn, bytes) || insn.size != 4 || bytes[0] != 0x48 ||
            bytes[1] != 0xc1 || bytes[2] != 0xc7 || bytes[3] != distances[i])
            return false;
    }
    return true;
}

// One instruction further; false: the block has ended with it.
static bool step(uint64_t *pc, bool *is_there) {
    struct tool_insn insn;
    uint8_t bytes[TOOL_INSN_BYTES];
    *is_there = tool_look(*pc, &insn, bytes);
    if (!*is_there)
        return false;
    if (insn.size == 4 && bytes[1] == 0xc1 && is_request(*pc)) {
        *pc += REQUEST_SIZE;
        return false;
    }
    *pc += insn.size;
    enum instruction_kind kind = bbv_blocks_kind(&insn);
    return kind == KIND_PLAIN || kind == KIND_FLDCW || kind == KIND_LODS;
}

static void measure(struct block *block) {
    uint64_t pc = block->pc;
    uint32_t length = 0;
    bool goes_on = true, is_there = true;
    while (goes_on && length < BLOCK_LONGEST) {
        goes_on = step(&pc, &is_there);
        length += is_there;
    }
    block->end = pc;
    block->length = length ? length : 1;
}

uint64_t bbv_blocks_address(uint32_t index, uint32_t instruction) {
    uint64_t pc = bbv_blocks[index].pc;
    bool is_there;
    while (instruction--)
        if (!step(&pc, &is_there))
            return 0;
    return pc;
}

// ---- the table ---------------------------------------------------------------------------------

static uint32_t add_block(uint64_t pc, bool *is_new) {
    uint32_t at = (uint32_t)(hash_integer(pc) % SLOTS);
    uint32_t index;
    *is_new = false;
    bbv_records_lock();
    while ((index = slots[at]) && bbv_blocks[index].pc != pc)
        at = (at + 1) % SLOTS;
    if (!index && block_count < BLOCKS) {
        *is_new = true;
        index = slots[at] = block_count++;
        bbv_blocks[index].pc = pc;
        measure(&bbv_blocks[index]);
    }
    bbv_records_unlock();
    if (!index)
        bbv_totals->is_incomplete = 1;
    return index;
}

uint32_t bbv_blocks_find(uint64_t pc) {
    bool is_new;
    return add_block(pc, &is_new);
}

uint32_t bbv_blocks_look(uint64_t pc) {
    bool is_new;
    uint32_t index = add_block(pc, &is_new);
    if (index && !is_new)
        measure(&bbv_blocks[index]);
    return index;
}

void bbv_blocks_number(uint32_t index) {
    bbv_records_lock();
    if (!bbv_blocks[index].number) {
        bbv_blocks[index].number = ++last_number;
        bbv_records_block(last_number, bbv_blocks[index].pc);
    }
    bbv_records_unlock();
}
