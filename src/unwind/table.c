#include "unwind/table.h"

#include "base/hash.h"
#include "unwind/pages.h"

#define RULES_MAX       65535u
#define RULE_SLOTS      131072u
#define WIDE_MAX        4096u
#define WIDE_SLOTS      8192u
#define EXPRESSIONS_MAX 4096u

static const uint8_t slot_register[6] = {UNWIND_RBX, UNWIND_RBP, UNWIND_R12,
                                         UNWIND_R13, UNWIND_R14, UNWIND_R15};

#define SLOT_COLUMNS                                                                               \
    (1u << UNWIND_RBX | 1u << UNWIND_RBP | 1u << UNWIND_R12 | 1u << UNWIND_R13 |                   \
     1u << UNWIND_R14 | 1u << UNWIND_R15)

// A function to compile: where its code starts, and where its FDE is.
struct function {
    uint32_t code;  // offset from the module's start
    uint32_t entry; // offset in the frames view
};

// Everything that grows lies in one reservation, which is given back when the table is done.
struct builder {
    const struct unwind_image *image;
    uint32_t span;
    struct cfi_machine *machine;
    struct function *functions;
    size_t function_count, function_capacity;
    uint32_t *offsets;
    uint16_t *indexes;
    size_t row_count, row_capacity;
    struct unwind_rule *rules;
    uint32_t *rule_slots; // hash table: index of a rule plus one
    size_t rule_count;
    struct unwind_wide_rule *wide;
    uint32_t *wide_slots;
    size_t wide_count;
    uint8_t *expressions;
    size_t expression_size;
    uint32_t good, bad;
    uint64_t covered; // code before this offset has its rows
    uint64_t work_max;
    bool signal; // the function being compiled is a signal trampoline
};

// ---- rules ----

_Static_assert(sizeof(struct unwind_rule) == 16, "no padding: compared as bytes");
_Static_assert(sizeof(struct unwind_wide_rule) == 152, "no padding: compared as bytes");

// Finds or adds an element, of whole words, in an array with a hash table beside it. Returns
// capacity when full. Inlined, because every row of a table comes here: the size is known there.
__attribute__((always_inline)) static inline size_t intern(void *array, size_t *count,
                                                           size_t capacity, uint32_t *slots,
                                                           size_t slot_count, const void *element,
                                                           size_t size) {
    uint64_t hash = 0;
    const uint8_t *bytes = element;
    for (size_t i = 0; i < size; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, 8);
        hash = hash_add(hash, word);
    }
    for (size_t slot = hash & (slot_count - 1);; slot = (slot + 1) & (slot_count - 1)) {
        uint8_t *place;
        if (slots[slot] != 0) {
            place = (uint8_t *)array + (slots[slot] - 1) * size;
            if (memcmp(place, element, size) == 0)
                return slots[slot] - 1;
            continue;
        }
        if (*count == capacity)
            return capacity;
        memcpy((uint8_t *)array + *count * size, element, size);
        slots[slot] = (uint32_t)++ * count;
        return *count - 1;
    }
}

static size_t intern_rule(struct builder *builder, const struct unwind_rule *rule) {
    size_t index = intern(builder->rules, &builder->rule_count, RULES_MAX, builder->rule_slots,
                          RULE_SLOTS, rule, sizeof *rule);
    return index == RULES_MAX ? 0 : index;
}

static bool intern_expression(struct builder *builder, struct unwind_column *column) {
    if (column->kind != COLUMN_EXPRESSION && column->kind != COLUMN_AT_EXPRESSION)
        return true;
    const uint8_t *bytes = builder->image->frames.bytes + column->value;
    size_t at = 0;
    while (at + column->length <= builder->expression_size &&
           memcmp(builder->expressions + at, bytes, column->length) != 0)
        at++;
    if (at + column->length > builder->expression_size) {
        at = builder->expression_size;
        if (column->length > EXPRESSIONS_MAX - at)
            return false;
        memcpy(builder->expressions + at, bytes, column->length);
        builder->expression_size += column->length;
    }
    // Searching costs as much as there are bytes before: count it as work.
    builder->machine->work += at;
    column->value = (int32_t)at;
    return true;
}

static size_t wide_rule(struct builder *builder, const struct cfi_state *state) {
    struct unwind_wide_rule wide = {.cfa = state->cfa, .used = state->used};
    if (builder->machine->work > builder->work_max)
        return 0;
    if (!intern_expression(builder, &wide.cfa))
        return 0;
    for (uint32_t left = state->used; left; left &= left - 1) {
        int column = __builtin_ctz(left);
        wide.columns[column] = state->columns[column];
        if (!intern_expression(builder, &wide.columns[column]))
            return 0;
    }
    size_t index = intern(builder->wide, &builder->wide_count, WIDE_MAX, builder->wide_slots,
                          WIDE_SLOTS, &wide, sizeof wide);
    if (index == WIDE_MAX)
        return 0;
    struct unwind_rule rule = {
        .kind = RULE_WIDE, .offset = (int32_t)index, .signal = builder->signal};
    return intern_rule(builder, &rule);
}

// The index of the rule for a state; 0, the rule that knows nothing, if it cannot be expressed.
static size_t state_rule(struct builder *builder, const struct cfi_state *state) {
    const struct unwind_column *address = &state->columns[UNWIND_PC];
    if (address->kind == COLUMN_UNDEFINED)
        return intern_rule(builder, &(struct unwind_rule){.kind = RULE_END});
    if (address->kind == COLUMN_SAME || state->cfa.kind == COLUMN_SAME)
        return 0;
    if (state->cfa.kind != COLUMN_REGISTER || address->kind != COLUMN_AT_CFA ||
        address->value != -8 || (state->used & ~(SLOT_COLUMNS | 1u << UNWIND_PC)))
        return wide_rule(builder, state);
    struct unwind_rule rule = {.kind = RULE_FAST,
                               .base = state->cfa.reg,
                               .offset = state->cfa.value,
                               .signal = builder->signal,
                               .deepest = 1};
    for (size_t i = 0; i < sizeof slot_register; i++) {
        const struct unwind_column *column = &state->columns[slot_register[i]];
        if (column->kind == COLUMN_SAME || column->kind == COLUMN_UNDEFINED)
            continue;
        if (column->kind != COLUMN_AT_CFA || column->value >= 0 || column->value < -8 * 255 ||
            column->value % 8 != 0)
            return wide_rule(builder, state);
        rule.slots[i] = (uint8_t)(-column->value / 8);
        if (rule.slots[i] > rule.deepest)
            rule.deepest = rule.slots[i];
    }
    return intern_rule(builder, &rule);
}

// ---- rows ----

static void add_row(struct builder *builder, uint64_t offset, size_t rule) {
    size_t count = builder->row_count;
    while (count > 1 && builder->offsets[count - 1] >= offset)
        count--;
    if (count == 1 && offset == 0)
        count = 0;
    if (count > 0 && builder->indexes[count - 1] == rule) {
        builder->row_count = count;
        return;
    }
    if (count == builder->row_capacity)
        return;
    builder->offsets[count] = (uint32_t)offset;
    builder->indexes[count] = (uint16_t)rule;
    builder->row_count = count + 1;
}

static void add_state(void *context, uint64_t pc, const struct cfi_state *state) {
    struct builder *builder = context;
    add_row(builder, pc - builder->image->start, state_rule(builder, state));
}

static void add_function(struct builder *builder, const struct cfi_fde *fde) {
    const struct unwind_image *image = builder->image;
    if (fde->start < image->start || fde->start - image->start >= builder->span ||
        fde->end - image->start > builder->span) {
        builder->bad++;
        return;
    }
    if (fde->start == fde->end)
        return;
    uint64_t offset = fde->start - image->start;
    // What lies between functions is unknown, be it padding: a return address that was put on the
    // stack by hand may be the start of a function, and must not be taken for the one before it.
    if (offset > builder->covered)
        add_row(builder, builder->covered, 0);
    builder->signal = fde->cie->signal;
    uint64_t known = unwind_cfi_run(builder->machine, fde, add_state, builder);
    if (known == fde->end) {
        builder->good++;
    } else {
        builder->bad++;
        add_row(builder, known - image->start, 0);
    }
    builder->covered = fde->end - image->start;
}

// ---- finding the functions ----

// The search table of .eh_frame_hdr, if it has the one layout that linkers write.
static bool open_search_table(const struct unwind_image *image, struct cursor *cursor,
                              uint64_t *count) {
    if (image->header.size == 0)
        return false;
    *cursor = cursor_at(&image->header, image->header.address, image->header.size);
    cursor_skip(cursor, 1);
    uint8_t pointer_encoding = cursor_u8(cursor);
    uint8_t count_encoding = cursor_u8(cursor);
    uint8_t table_encoding = cursor_u8(cursor);
    cursor_number(cursor, pointer_encoding);
    if (table_encoding != (ENCODE_DATA_RELATIVE | ENCODE_S32) || count_encoding == ENCODE_OMIT)
        return false;
    *count = cursor_number(cursor, count_encoding);
    return !cursor->failed && *count > 0 && *count <= cursor_left(cursor) / 8;
}

static void note_function(struct builder *builder, uint64_t code, uint64_t entry) {
    const struct unwind_image *image = builder->image;
    if (code < image->start || code - image->start >= builder->span ||
        entry - image->frames.address > UINT32_MAX ||
        builder->function_count == builder->function_capacity) {
        builder->bad++;
        return;
    }
    builder->functions[builder->function_count++] = (struct function){
        (uint32_t)(code - image->start), (uint32_t)(entry - image->frames.address)};
}

// Each returns how many bytes the programs have at most, which bounds the number of rows.
static uint64_t list_from_table(struct builder *builder, struct cursor cursor, uint64_t count) {
    const struct unwind_image *image = builder->image;
    uint64_t base = image->header.address, total = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t code = base + (uint64_t)(int64_t)(int32_t)cursor_u32(&cursor);
        uint64_t entry = base + (uint64_t)(int64_t)(int32_t)cursor_u32(&cursor);
        struct cursor length = cursor_at(&image->frames, entry, 4);
        uint32_t size = cursor_u32(&length);
        if (length.failed) {
            builder->bad++;
            continue;
        }
        total += size;
        note_function(builder, code, entry);
    }
    return total < image->frames.size ? total : image->frames.size;
}

static uint64_t list_by_scanning(struct builder *builder) {
    const struct unwind_image *image = builder->image;
    struct cfi_fde fde;
    uint64_t entry = image->eh_frame;
    for (;;) {
        enum cfi_entry kind = unwind_cfi_read_entry(builder->machine, &image->frames, entry, &fde);
        if (kind == CFI_ENTRY_FDE)
            note_function(builder, fde.start, entry);
        else if (kind == CFI_ENTRY_BAD)
            builder->bad++;
        if (fde.next == 0)
            break;
        entry = fde.next;
    }
    builder->machine->work = 0;
    return entry - image->eh_frame;
}

static bool function_before(const struct function *a, const struct function *b) {
    return a->code != b->code ? a->code < b->code : a->entry < b->entry;
}

static void sift_down(struct function *heap, size_t at, size_t count) {
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && function_before(&heap[child], &heap[child + 1]))
            child++;
        if (!function_before(&heap[at], &heap[child]))
            return;
        struct function swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

// Search tables are sorted already. A heap sort for the rest: no recursion, no allocation, and no
// bad case that somebody could construct.
static void sort_functions(struct function *functions, size_t count) {
    size_t sorted = 1;
    while (sorted < count && !function_before(&functions[sorted], &functions[sorted - 1]))
        sorted++;
    if (sorted >= count)
        return;
    for (size_t i = count / 2; i-- > 0;)
        sift_down(functions, i, count);
    for (size_t i = count; i-- > 1;) {
        struct function swap = functions[0];
        functions[0] = functions[i];
        functions[i] = swap;
        sift_down(functions, 0, i);
    }
}

// ---- putting it together ----

static size_t round_up(size_t value, size_t unit) {
    return (value + unit - 1) / unit * unit;
}

static struct unwind_table *assemble(const struct builder *builder) {
    struct unwind_table header = {.span = builder->span,
                                  .row_count = (uint32_t)builder->row_count,
                                  .rule_count = (uint32_t)builder->rule_count,
                                  .wide_count = (uint32_t)builder->wide_count,
                                  .expression_size = (uint32_t)builder->expression_size,
                                  .functions = builder->good,
                                  .bad = builder->bad};
    while (builder->span >> header.shift > builder->row_count / 4 + 16)
        header.shift++;
    header.block_count = (builder->span >> header.shift) + 2;

    size_t at = round_up(sizeof header, 16);
    header.rules_at = (uint32_t)at;
    at += builder->rule_count * sizeof(struct unwind_rule);
    header.wide_at = (uint32_t)at;
    at += builder->wide_count * sizeof(struct unwind_wide_rule);
    header.blocks_at = (uint32_t)at;
    at += header.block_count * sizeof(uint32_t);
    header.offsets_at = (uint32_t)at;
    at += builder->row_count * sizeof(uint32_t);
    header.indexes_at = (uint32_t)at;
    at += builder->row_count * sizeof(uint16_t);
    header.expressions_at = (uint32_t)at;
    at += builder->expression_size;
    header.bytes = round_up(at, 4096);
    if (at > UINT32_MAX)
        return NULL;

    uint8_t *block = pages_map(header.bytes);
    if (!block)
        return NULL;
    memcpy(block, &header, sizeof header);
    memcpy(block + header.rules_at, builder->rules,
           builder->rule_count * sizeof(struct unwind_rule));
    memcpy(block + header.wide_at, builder->wide,
           builder->wide_count * sizeof(struct unwind_wide_rule));
    memcpy(block + header.offsets_at, builder->offsets, builder->row_count * sizeof(uint32_t));
    memcpy(block + header.indexes_at, builder->indexes, builder->row_count * sizeof(uint16_t));
    memcpy(block + header.expressions_at, builder->expressions, builder->expression_size);
    uint32_t *blocks = (uint32_t *)(block + header.blocks_at);
    size_t row = 0;
    for (size_t i = 0; i < header.block_count; i++) {
        while (row + 1 < builder->row_count && builder->offsets[row + 1] <= (uint64_t)i
                                                                                << header.shift)
            row++;
        blocks[i] = (uint32_t)row;
    }
    return (struct unwind_table *)block;
}

static void compile_functions(struct builder *builder) {
    const struct unwind_view *frames = &builder->image->frames;
    struct cfi_fde fde;
    // Honest data is read once; data that refers to itself over and over is not worth more.
    builder->work_max = 4 * frames->size + 65536;
    for (size_t i = 0; i < builder->function_count; i++) {
        uint64_t entry = frames->address + builder->functions[i].entry;
        if (builder->machine->work > builder->work_max ||
            unwind_cfi_read_entry(builder->machine, frames, entry, &fde) != CFI_ENTRY_FDE)
            builder->bad++;
        else
            add_function(builder, &fde);
    }
    add_row(builder, builder->covered, 0);
}

static struct unwind_table *compile_with(struct builder *builder, struct cursor *cursor,
                                         uint64_t count, bool listed) {
    static const struct unwind_rule nothing = {.kind = RULE_NONE};
    uint64_t program_bytes = listed ? list_from_table(builder, *cursor, count)
                                    : (builder->image->eh_frame ? list_by_scanning(builder) : 0);
    builder->row_capacity = program_bytes + 2 * builder->function_count + 2;
    size_t size = round_up(builder->row_capacity * sizeof(uint32_t), 16) +
                  builder->row_capacity * sizeof(uint16_t);
    uint8_t *rows = pages_map(size);
    if (!rows)
        return NULL;
    builder->offsets = (uint32_t *)rows;
    builder->indexes = (uint16_t *)(rows + round_up(builder->row_capacity * sizeof(uint32_t), 16));
    intern_rule(builder, &nothing);
    add_row(builder, 0, 0);
    sort_functions(builder->functions, builder->function_count);
    compile_functions(builder);
    struct unwind_table *table = assemble(builder);
    pages_unmap(rows, size);
    return table;
}

struct unwind_table *unwind_table_compile(const struct unwind_image *image) {
    uint64_t span = image->end - image->start;
    struct builder builder = {.image = image,
                              .span = span < UINT32_MAX ? (uint32_t)span : UINT32_MAX};
    struct cursor cursor = {0};
    uint64_t count = 0;
    bool listed = open_search_table(image, &cursor, &count);
    // The smallest FDE that can be read takes 11 bytes.
    builder.function_capacity = listed ? count : image->frames.size / 8 + 1;

    size_t sizes[] = {sizeof(struct cfi_machine),
                      builder.function_capacity * sizeof(struct function),
                      RULES_MAX * sizeof(struct unwind_rule),
                      RULE_SLOTS * sizeof(uint32_t),
                      WIDE_MAX * sizeof(struct unwind_wide_rule),
                      WIDE_SLOTS * sizeof(uint32_t),
                      EXPRESSIONS_MAX};
    enum { PARTS = sizeof sizes / sizeof sizes[0] };
    size_t total = 0;
    for (size_t i = 0; i < PARTS; i++)
        total += round_up(sizes[i], 64);
    uint8_t *scratch = pages_map(total);
    if (!scratch)
        return NULL;
    void *parts[PARTS];
    uint8_t *at = scratch;
    for (size_t i = 0; i < PARTS; at += round_up(sizes[i], 64), i++)
        parts[i] = at;
    builder.machine = parts[0];
    builder.functions = parts[1];
    builder.rules = parts[2];
    builder.rule_slots = parts[3];
    builder.wide = parts[4];
    builder.wide_slots = parts[5];
    builder.expressions = parts[6];
    struct unwind_table *table = compile_with(&builder, &cursor, count, listed);
    pages_unmap(scratch, total);
    return table;
}

void unwind_table_free(struct unwind_table *table) {
    if (table)
        pages_unmap(table, table->bytes);
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t offset) {
    const struct unwind_rule *rules = table_part(table, table->rules_at);
    if (offset >= table->span)
        return &rules[0];
    const uint32_t *blocks = table_part(table, table->blocks_at);
    const uint32_t *offsets = table_part(table, table->offsets_at);
    const uint16_t *indexes = table_part(table, table->indexes_at);
    size_t block = offset >> table->shift;
    size_t low = blocks[block], high = blocks[block + 1];
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        if (offsets[middle] <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return &rules[indexes[low]];
}

static bool check_column(const struct unwind_table *table, const struct unwind_column *column) {
    if (column->kind != COLUMN_EXPRESSION && column->kind != COLUMN_AT_EXPRESSION)
        return column->kind <= COLUMN_EXPRESSION && column->reg < UNWIND_REGISTERS;
    return column->value >= 0 && column->length > 0 &&
           (uint64_t)column->value + column->length <= table->expression_size;
}

bool unwind_table_check(const struct unwind_table *table) {
    const struct unwind_rule *rules = table_part(table, table->rules_at);
    const uint32_t *offsets = table_part(table, table->offsets_at);
    const uint16_t *indexes = table_part(table, table->indexes_at);
    if (table->row_count == 0 || offsets[0] != 0 || table->rule_count == 0)
        return false;
    for (size_t i = 0; i < table->row_count; i++)
        if ((i > 0 && offsets[i] <= offsets[i - 1]) || indexes[i] >= table->rule_count)
            return false;
    for (size_t i = 0; i < table->rule_count; i++) {
        const struct unwind_rule *rule = &rules[i];
        if (rule->kind > RULE_END || rule->base >= UNWIND_PC)
            return false;
        if (rule->kind != RULE_WIDE)
            continue;
        if (rule->offset < 0 || (uint32_t)rule->offset >= table->wide_count)
            return false;
        const struct unwind_wide_rule *wide = table_wide(table, rule);
        if (!check_column(table, &wide->cfa) || wide->cfa.kind < COLUMN_AT_REGISTER ||
            wide->used >> UNWIND_REGISTERS)
            return false;
        for (size_t column = 0; column < UNWIND_REGISTERS; column++)
            if (!check_column(table, &wide->columns[column]) ||
                (wide->used >> column & 1) != (wide->columns[column].kind != COLUMN_SAME))
                return false;
    }
    return true;
}
