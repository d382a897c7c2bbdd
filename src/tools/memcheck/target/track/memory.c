// Memory operands: addresses, bits read and written, and findings about them.
#include "tools/memcheck/target/track/parts.h"

static void report_access(uint64_t address, unsigned size, bool write) {
    if (shadow_is_forbidden(address))
        tool_fault(address, write);
    findings_add_access(address, size, write);
}

void report_value(struct context *c, unsigned size) {
    if (track_value_errors)
        findings_add_value(size, c->origin);
}

void report_condition(struct context *c) {
    if (track_value_errors)
        findings_add_condition(c->origin);
}

// ---- addresses ----

static uint64_t address_bits(struct context *c, const struct tool_access *access) {
    uint64_t bits = 0;
    if (access->base >= 0)
        bits |= general_bits(c, access->base);
    if (access->index >= 0)
        bits |= general_bits(c, access->index);
    return access->narrow ? (uint32_t)bits : bits;
}

uint64_t operand_address(struct context *c, const struct track *t, unsigned operand) {
    if (c->known >> operand & 1)
        return c->address[operand];
    const struct tool_access *access = &t->operands[operand].access;
    uint32_t origin = c->origin;
    if (address_bits(c, access)) {
        report_value(c, 8);
        // Where the address comes from says nothing about the data.
        c->origin = origin;
    }
    c->known |= 1 << operand;
    return c->address[operand] = tool_access_address(access);
}

// ---- bits ----

// A load that is naturally aligned cannot leave the page or the cache line, so code may read whole
// words of which it needs a part.
static bool may_be_partial(uint64_t address, unsigned size) {
    return track_partial_loads && size >= 4 && size <= 64 && !(size & (size - 1)) &&
           !(address & (size - 1));
}

// Of the first byte that is undefined and has one.
static void note_origin(struct context *c, uint64_t address, unsigned size, const uint8_t *bits) {
    if (!track_origins)
        return;
    for (unsigned i = 0; i < size && !c->origin; i++)
        if (bits[i])
            c->origin = shadow_origin(address + i);
}

static bool is_readable(uint64_t address) {
    uint8_t byte;
    return !tool_read(&byte, address, sizeof byte);
}

static void load_slowly(struct context *c, uint64_t address, unsigned size, uint8_t *bits) {
    unsigned missing = 0;
    if (shadow_read_bits(address, size, bits)) {
        note_origin(c, address, size, bits);
        return;
    }
    for (unsigned i = 0; i < size; i++) {
        uint8_t byte = 0;
        if (!shadow_state(address + i, &byte)) {
            missing++;
            byte = 0;
        }
        bits[i] = byte;
    }
    note_origin(c, address, size, bits);
    if (!missing)
        return;
    if ((missing == size && !c->over_reads) || !may_be_partial(address, size)) {
        report_access(address, size, false);
        c->unread = is_readable(address) ? c->unread : address + 1;
        return;
    }
    for (unsigned i = 0; i < size; i++) {
        uint8_t byte;
        if (!shadow_state(address + i, &byte))
            bits[i] = SHADOW_UNDEFINED;
    }
}

void memory_load(struct context *c, uint64_t address, unsigned size, void *bits) {
    uint64_t bad;
    if (shadow_check_defined(address, size, &bad) == SHADOW_FINE)
        for (unsigned i = 0; i < size; i++)
            ((uint8_t *)bits)[i] = 0;
    else
        load_slowly(c, address, size, bits);
}

uint64_t memory_load_word(struct context *c, uint64_t address, unsigned size) {
    uint64_t bits = 0, bad;
    if (shadow_read_word(address, size, &bits)) {
        if (bits)
            note_origin(c, address, size, (const uint8_t *)&bits);
        return bits;
    }
    bits = 0;
    if (shadow_check_defined(address, size, &bad) != SHADOW_FINE)
        load_slowly(c, address, size, (uint8_t *)&bits);
    return bits;
}

static void check_write(uint64_t address, unsigned size) {
    uint64_t bad;
    if (shadow_check_addressable(address, size, &bad) == SHADOW_FINE)
        return;
    // Reports of wide stores are by words.
    if (size <= 8 || size & 7) {
        report_access(address, size, true);
        return;
    }
    for (unsigned i = 0; i < size; i += 8)
        if (shadow_check_addressable(address + i, 8, &bad) != SHADOW_FINE)
            report_access(address + i, 8, true);
}

void memory_store(struct context *c, uint64_t address, unsigned size, const void *bits) {
    const uint8_t *bytes = bits;
    if (!shadow_write_bits(address, size, bits)) {
        if (c->unread != address + 1)
            check_write(address, size);
        for (unsigned i = 0; i < size; i++) {
            uint8_t old;
            if (shadow_state(address + i, &old) && old != bytes[i])
                shadow_set_bits(address + i, bytes[i]);
        }
    }
    uint8_t any = 0;
    for (unsigned i = 0; track_origins && i < size; i++)
        any |= bytes[i];
    if (any)
        shadow_set_origin(address, size, c->origin);
}

uint64_t memory_value(uint64_t address, unsigned size) {
    uint64_t value = 0;
    if (tool_read(&value, address, size))
        return 0;
    return value;
}
