// String instructions, with and without repetition: the whole of it at once, before it runs.
#include "base/x86.h"
#include "tools/memcheck/target/track/parts.h"

enum string_kind { MOVE, STORE, LOAD, COMPARE, SCAN };

struct string {
    uint64_t from, to; // of the next element
    int64_t step;
    uint64_t count;
    unsigned size;
    bool narrow;
};

static uint64_t string_register(struct context *c, const struct string *s, unsigned number,
                                uint64_t base) {
    uint64_t value = s->narrow ? (uint32_t)c->values[number] : c->values[number];
    uint32_t origin = c->origin;
    if (general_bits(c, number)) {
        report_value(c, 8);
        c->origin = origin;
    }
    return value + base;
}

// Segments count for the source only.
static uint64_t source_base(const struct track *t) {
    for (unsigned i = 0; i < t->operand_count; i++) {
        const struct track_operand *o = &t->operands[i];
        if (o->kind == OPERAND_MEMORY && o->access.base == RSI && o->access.segment) {
            struct tool_access base = {.base = -1, .index = -1, .segment = o->access.segment};
            return tool_access_address(&base);
        }
    }
    return 0;
}

static bool reads_source(const struct track *t) {
    return t->variant == MOVE || t->variant == LOAD || t->variant == COMPARE;
}

static bool uses_destination(const struct track *t) {
    return t->variant != LOAD;
}

static bool start_string(struct context *c, const struct track *t, struct string *s) {
    s->size = t->width / 8;
    s->step = tool_direction() * (int)s->size;
    s->narrow = t->is_narrow;
    s->count = 1;
    if (t->repeats) {
        s->count = s->narrow ? (uint32_t)c->values[RCX] : c->values[RCX];
        uint32_t origin = c->origin;
        if (general_bits(c, RCX)) {
            report_condition(c);
            c->origin = origin;
        }
    }
    if (!s->count)
        return false;
    if (reads_source(t))
        s->from = string_register(c, s, RSI, source_base(t));
    if (uses_destination(t))
        s->to = string_register(c, s, RDI, 0);
    return true;
}

static void next(struct string *s) {
    s->from += s->step;
    s->to += s->step;
    s->count--;
}

// The lowest address of what is left.
static uint64_t low_end(const struct string *s, uint64_t at) {
    return s->step > 0 ? at : at + s->step * (int64_t)(s->count - 1);
}

static void run_move(struct context *c, struct string *s) {
    uint64_t from = low_end(s, s->from), to = low_end(s, s->to), size = s->count * s->size, bad;
    bool overlap = from < to + size && to < from + size;
    if (s->count > 1 && !overlap && shadow_check_addressable(from, size, &bad) == SHADOW_FINE &&
        shadow_check_addressable(to, size, &bad) == SHADOW_FINE) {
        shadow_copy(to, from, size);
        return;
    }
    for (; s->count; next(s)) {
        c->origin = 0;
        memory_store_word(c, s->to, s->size, memory_load_word(c, s->from, s->size));
    }
}

static void run_store(struct context *c, struct string *s) {
    uint64_t to = low_end(s, s->to), size = s->count * s->size, bad;
    uint64_t bits = general_bits(c, RAX) & width_mask(s->size * 8);
    if (!bits && shadow_check_addressable(to, size, &bad) == SHADOW_FINE) {
        shadow_make_defined(to, size);
        return;
    }
    for (; s->count; next(s))
        memory_store_word(c, s->to, s->size, bits);
}

static void run_load(struct context *c, struct string *s) {
    uint64_t bits = 0, mask = width_mask(s->size * 8);
    uint64_t old = general_bits(c, RAX);
    for (; s->count; next(s)) {
        c->origin = 0;
        bits = memory_load_word(c, s->from, s->size);
    }
    set_general_bits(c, RAX, s->size >= 4 ? bits : (old & ~mask) | bits);
}

static struct item memory_item(struct context *c, uint64_t address, unsigned size) {
    uint64_t bits = memory_load_word(c, address, size);
    return (struct item){memory_value(address, size), bits};
}

// Goes on as far as the instruction will, asking at each step whether that is certain.
static void run_compare(struct context *c, const struct track *t, struct string *s) {
    uint64_t mask = width_mask(s->size * 8);
    struct item a = {c->values[RAX] & mask, general_bits(c, RAX) & mask};
    uint16_t conditions = 0;
    for (; s->count; next(s)) {
        if (t->variant == COMPARE) {
            c->origin = 0;
            a = memory_item(c, s->from, s->size);
        }
        struct item b = memory_item(c, s->to, s->size);
        conditions = subtract_conditions(s->size * 8, a, b, (struct item){0, 0});
        if (!t->repeats)
            break;
        if (conditions >> COND_Z & 1)
            report_condition(c);
        if ((a.value == b.value) != t->repeats_while_equal)
            break;
    }
    set_conditions(c, conditions);
}

static void run_string(struct context *c, const struct track *t) {
    struct string s = {0};
    if (!start_string(c, t, &s))
        return;
    switch (t->variant) {
    case MOVE:
        run_move(c, &s);
        break;
    case STORE:
        run_store(c, &s);
        break;
    case LOAD:
        run_load(c, &s);
        break;
    default:
        run_compare(c, t, &s);
    }
    // Pointers and count are as defined as before, but for what a sum spreads.
    static const uint8_t numbers[] = {RCX, RSI, RDI};
    for (unsigned i = 0; i < sizeof numbers; i++)
        if (general_bits(c, numbers[i]) && (i || t->repeats))
            set_general_bits(c, numbers[i], ~0ul);
}

track_function *track_string(struct track *t, const ZydisDecodedInstruction *z) {
    if (z->meta.category != ZYDIS_CATEGORY_STRINGOP)
        return NULL;
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSQ:
        t->variant = MOVE;
        break;
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ:
        t->variant = STORE;
        break;
    case ZYDIS_MNEMONIC_LODSB:
    case ZYDIS_MNEMONIC_LODSW:
    case ZYDIS_MNEMONIC_LODSD:
    case ZYDIS_MNEMONIC_LODSQ:
        t->variant = LOAD;
        break;
    case ZYDIS_MNEMONIC_CMPSB:
    case ZYDIS_MNEMONIC_CMPSW:
    case ZYDIS_MNEMONIC_CMPSD:
    case ZYDIS_MNEMONIC_CMPSQ:
        t->variant = COMPARE;
        break;
    default:
        t->variant = SCAN;
    }
    t->width = z->operand_width;
    t->is_narrow = z->address_width == 32;
    t->repeats_while_equal = !(z->attributes & ZYDIS_ATTRIB_HAS_REPNE);
    return run_string;
}
