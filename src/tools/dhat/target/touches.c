// Accesses to blocks. Inserted code counts those of instructions (heap_insert_access); what is
// here is the rest: string instructions, bit strings, functions that are replaced, and accesses
// that reach beyond a block's end. General registers only.
//
// What counts as a read or a write is what Valgrind's translation of the instruction does: an
// atomic change reads twice, and stack near the stack pointer is not looked at.
#include "base/x86.h"
#include "tools/dhat/target/dhat.h"
#include "tools/shared/instructions.h"

enum { COUNTER_MOST = 0xffff };

// ---- ranges ------------------------------------------------------------------------------------

// Four counters in a word, none of which may overflow.
static bool can_add(uint64_t word) {
    uint64_t rest = ~word;
    return !((rest - 0x0001000100010001) & word & 0x8000800080008000);
}

static void count_bytes(uint64_t address, size_t size, unsigned times) {
    uint16_t *counters = counters_of(address);
    size_t i = 0;
    while (times == 1 && i + 4 <= size && can_add(*(const uint64_t *)(counters + i))) {
        *(uint64_t *)(counters + i) += 0x0001000100010001;
        i += 4;
    }
    for (; i < size; i++)
        counters[i] = counters[i] + times < COUNTER_MOST ? counters[i] + times : COUNTER_MOST;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

// From an address in the block's slot to the end of the block. Of the note's two lines of the cache
// only the first is asked.
static size_t bytes_left(const struct dhat_note *note, uint64_t address) {
    uint64_t place = address << HEAP_PLACE_SHIFT;
    return place < note->end ? (note->end - place) >> HEAP_PLACE_SHIFT : 0;
}

// Up to the end of the block that the address lies in; how many bytes these are, 0: none.
static size_t touch(uint64_t address, size_t size, bool writes) {
    struct dhat_note *note = note_of(address);
    size_t left = note ? bytes_left(note, address) : 0;
    if (!left)
        return 0;
    size = least(size, left);
    *(writes ? note->writes : note->reads) += size;
    if (note->counted_end)
        count_bytes(address, size, 1);
    return size;
}

static void touch_all(uint64_t address, size_t size, bool writes) {
    size_t done;
    if (dhat_mode != DHAT_HEAP)
        return;
    for (; size && (done = touch(address, size, writes)); size -= done)
        address += done;
}

void touch_read(uint64_t address, size_t size) {
    touch_all(address, size, false);
}

void touch_write(uint64_t address, size_t size) {
    touch_all(address, size, true);
}

// An access of an instruction counts in full if it begins in a block.
static void touch_one(uint64_t address, const struct heap_touch *it) {
    struct dhat_note *note = note_of(address);
    size_t left = note ? bytes_left(note, address) : 0;
    if (!left)
        return;
    note->reads[0] += it->reads * it->size;
    note->writes[0] += it->writes * it->size;
    if (note->counted_end)
        count_bytes(address, least(it->size, left), it->reads + it->writes);
}

// A group that begins in the heap but does not lie within one block.
static void beyond(uint32_t argument, uint64_t rsp, void *state, uint64_t end) {
    const struct heap_touches *group = (const struct heap_touches *)(uintptr_t)argument;
    uint64_t start = HEAP_START + (end >> HEAP_PLACE_SHIFT) - group->size;
    for (unsigned i = 0; i < group->count; i++)
        touch_one(start + group->touches[i].offset, &group->touches[i]);
}

// ---- instructions ------------------------------------------------------------------------------

// In reach of the stack pointer, where Valgrind does not look.
static bool is_stack(const struct tool_access *access) {
    enum { NEAR = 16384 };
    return access->base == RSP && access->index < 0 && !access->segment &&
           access->displacement >= -RED_ZONE && access->displacement < NEAR - RED_ZONE;
}

// Addresses that are known now lie in modules, or nowhere near the heap.
static bool is_fixed(const struct tool_access *access) {
    return access->base < 0 && access->index < 0 && !access->segment &&
           (uint64_t)access->displacement - HEAP_START >= HEAP_END - HEAP_START;
}

struct repeat {
    struct repeated insn;
    struct tool_access accesses[2];
    unsigned count;
};

static void touch_steps(const struct tool_access *access, uint64_t steps) {
    uint64_t address = tool_access_address(access), size = steps * access->size;
    if (tool_direction() < 0)
        address -= size - access->size;
    if (access->reads)
        touch_read(address, size);
    if (access->writes)
        touch_write(address, size);
}

static void run_repeat(void *argument) {
    const struct repeat *repeat = argument;
    bool found;
    uint64_t steps = repeated_steps(&repeat->insn, &found);
    ((struct dhat_thread *)tool_thread_state())->words[0] += steps;
    for (unsigned i = 0; steps && i < repeat->count; i++)
        touch_steps(&repeat->accesses[i], steps);
}

static void insert_repeat(struct tool_block *block, const struct tool_insn *insn) {
    struct repeat *repeat = tool_allocate(sizeof *repeat);
    *repeat = (struct repeat){.insn = insn_repeated(insn)};
    for (unsigned i = 0; i < insn->access_count && repeat->count < 2; i++)
        repeat->accesses[repeat->count++] = insn->accesses[i];
    tool_insert_call(block, run_repeat, repeat);
}

// bt, bts, btr, btc with a register: the byte that the bit is in.
struct bit_string {
    struct tool_access access;
    unsigned reg, reads;
};

static bool is_bit_string(const struct tool_insn *insn, unsigned *reg) {
    unsigned at = 0, high = 0;
    while (at + 2 < insn->size && insn->bytes[at] != 0x0f) {
        high = (insn->bytes[at] & 0xf4) == 0x44 ? 8 : 0;
        at++;
    }
    if (at + 2 >= insn->size || (insn->bytes[at + 1] & 0xe7) != 0xa3)
        return false;
    *reg = high | (insn->bytes[at + 2] >> 3 & 7);
    return true;
}

static void touch_bit(void *argument) {
    const struct bit_string *it = argument;
    uint64_t value = tool_register(it->reg);
    int64_t bit = it->access.size == 8   ? (int64_t)value
                  : it->access.size == 4 ? (int64_t)(int32_t)value
                                         : (int64_t)(int16_t)value;
    uint64_t address = tool_access_address(&it->access) + (uint64_t)(bit >> 3);
    for (unsigned i = 0; i < it->reads; i++)
        touch_read(address, 1);
    if (it->access.writes)
        touch_write(address, 1);
}

static bool insert_bit_string(struct tool_block *block, const struct tool_insn *insn) {
    unsigned reg;
    if (insn->access_count != 1 || !is_bit_string(insn, &reg))
        return false;
    struct bit_string *it = tool_allocate(sizeof *it);
    *it = (struct bit_string){insn->accesses[0], reg, insn_is_attempt(insn) ? 2 : 1};
    tool_insert_call(block, touch_bit, it);
    return true;
}

// fxsave and fxrstor leave the last 96 of their 512 bytes alone. The registers of vectors are
// looked at apart from the rest, as Valgrind does it, and so is their control word.
static bool insert_register_save(struct tool_block *block, const struct tool_insn *insn) {
    static const struct {
        uint8_t offset;
        uint16_t size;
    } parts[] = {{0, 160}, {24, 8}, {160, 256}};
    if (insn->access_count != 1 || insn->accesses[0].size != 512 ||
        insn->accesses[0].reads == insn->accesses[0].writes)
        return false;
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++) {
        struct tool_access part = insn->accesses[0];
        part.displacement += parts[i].offset;
        part.size = parts[i].size;
        heap_insert_access(block, &part, part.reads, part.writes, beyond);
    }
    return true;
}

void touches_insert(struct tool_block *block, const struct tool_insn *insn) {
    if (insn_is_repeated(insn)) {
        insert_repeat(block, insn);
        return;
    }
    if (insert_bit_string(block, insn) || insert_register_save(block, insn))
        return;
    for (unsigned i = 0; i < insn->access_count; i++) {
        const struct tool_access *access = &insn->accesses[i];
        if (access->scattered || !access->size || is_stack(access) || is_fixed(access))
            continue;
        unsigned reads = access->reads;
        if (access->reads && access->writes && i == 0 && insn_is_attempt(insn))
            reads = 2;
        heap_insert_access(block, access, reads, access->writes, beyond);
    }
}
