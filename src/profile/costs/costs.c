#include "profile/costs/costs.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

// Hash tables of numbers plus 1; 0: free. Strings are numbers into a table of their own.
struct table {
    uint32_t *slots;
    size_t room, count;
};

struct cost_index {
    struct table strings, functions, lines, calls, instructions;
    char **texts;
    size_t function_room, line_room, call_room, instruction_room, jump_room, value_room, text_room;
};

struct cost_profile *costs_new(void) {
    struct cost_profile *profile = base_allocate(sizeof *profile);
    memset(profile, 0, sizeof *profile);
    profile->index = base_allocate(sizeof *profile->index);
    memset(profile->index, 0, sizeof *profile->index);
    return profile;
}

void costs_free(struct cost_profile *profile) {
    struct cost_index *index = profile->index;
    for (size_t i = 0; i < index->strings.count; i++)
        free(index->texts[i]);
    free(index->texts);
    free(index->strings.slots);
    free(index->functions.slots);
    free(index->lines.slots);
    free(index->calls.slots);
    free(index->instructions.slots);
    free(index);
    free(profile->functions);
    free(profile->lines);
    free(profile->calls);
    free(profile->instructions);
    free(profile->jumps);
    free(profile->values);
    free(profile);
}

int costs_event(const struct cost_profile *profile, const char *name) {
    for (unsigned i = 0; i < profile->event_count; i++)
        if (strcmp(profile->events[i], name) == 0)
            return (int)i;
    return -1;
}

// ---- tables ------------------------------------------------------------------------------------

static uint64_t mix(uint64_t hash, uint64_t value) {
    return (hash ^ value) * 0x9e3779b97f4a7c15ull;
}

static uint64_t hash_of_text(const char *text, size_t size) {
    uint64_t hash = size, word = 0;
    for (; size >= sizeof word; text += sizeof word, size -= sizeof word) {
        memcpy(&word, text, sizeof word);
        hash = mix(hash, word);
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, text, size);
    return mix(hash, word);
}

static uint64_t hash_of_function(const char *object, const char *file, const char *name) {
    return mix(mix(mix(1, (uint64_t)object), (uint64_t)file), (uint64_t)name);
}

static uint64_t hash_of_line(uint32_t function, const char *file, uint32_t line) {
    return mix(mix(mix(2, function), (uint64_t)file), line);
}

static uint64_t hash_of_call(const struct cost_call *call) {
    return mix(mix(hash_of_line(call->caller, call->file, call->line), call->callee), 3);
}

static uint64_t hash_of_instruction(uint32_t function, uint64_t address) {
    return mix(mix(4, function), address);
}

static uint64_t hash_at(const struct cost_profile *profile, const struct table *table, size_t at) {
    const struct cost_index *index = profile->index;
    if (table == &index->strings)
        return hash_of_text(index->texts[at], strlen(index->texts[at]));
    if (table == &index->functions) {
        const struct cost_function *function = &profile->functions[at];
        return hash_of_function(function->object, function->file, function->name);
    }
    if (table == &index->lines)
        return hash_of_line(profile->lines[at].function, profile->lines[at].file,
                            profile->lines[at].line);
    if (table == &index->instructions)
        return hash_of_instruction(profile->instructions[at].function,
                                   profile->instructions[at].address);
    return hash_of_call(&profile->calls[at]);
}

static void grow_table(const struct cost_profile *profile, struct table *table) {
    if (2 * (table->count + 1) < table->room)
        return;
    table->room = table->room ? 2 * table->room : 1024;
    free(table->slots);
    table->slots = base_allocate(table->room * sizeof *table->slots);
    memset(table->slots, 0, table->room * sizeof *table->slots);
    for (size_t i = 0; i < table->count; i++) {
        size_t at = (hash_at(profile, table, i) >> 20) & (table->room - 1);
        while (table->slots[at])
            at = (at + 1) & (table->room - 1);
        table->slots[at] = i + 1;
    }
}

// Makes room for one more in an array.
static void *grow(void *array, size_t count, size_t *room, size_t size) {
    if (count < *room)
        return array;
    *room = *room ? 2 * *room : 256;
    return base_reallocate(array, *room * size);
}

static size_t add_values(struct cost_profile *profile) {
    size_t at = profile->value_count;
    while (at + COST_EVENTS > profile->index->value_room)
        profile->values = grow(profile->values, profile->index->value_room,
                               &profile->index->value_room, sizeof *profile->values);
    memset(profile->values + at, 0, profile->event_count * sizeof *profile->values);
    profile->value_count += profile->event_count;
    return at;
}

static void add_to(struct cost_profile *profile, size_t number, const uint64_t *values) {
    for (unsigned i = 0; i < profile->event_count; i++)
        profile->values[number + i] += values[i];
}

// ---- what is in it -----------------------------------------------------------------------------

const char *costs_string(struct cost_profile *profile, const char *text, size_t size) {
    struct cost_index *index = profile->index;
    grow_table(profile, &index->strings);
    size_t mask = index->strings.room - 1, at = (hash_of_text(text, size) >> 20) & mask;
    for (; index->strings.slots[at]; at = (at + 1) & mask) {
        char *known = index->texts[index->strings.slots[at] - 1];
        if (strncmp(known, text, size) == 0 && !known[size])
            return known;
    }
    index->texts = grow(index->texts, index->strings.count, &index->text_room, sizeof(char *));
    char *copy = base_allocate(size + 1);
    memcpy(copy, text, size);
    copy[size] = 0;
    index->texts[index->strings.count++] = copy;
    index->strings.slots[at] = index->strings.count;
    return copy;
}

uint32_t costs_function(struct cost_profile *profile, const char *object, const char *file,
                        const char *name) {
    struct cost_index *index = profile->index;
    grow_table(profile, &index->functions);
    size_t mask = index->functions.room - 1;
    size_t at = (hash_of_function(object, file, name) >> 20) & mask;
    for (; index->functions.slots[at]; at = (at + 1) & mask) {
        const struct cost_function *known = &profile->functions[index->functions.slots[at] - 1];
        if (known->object == object && known->file == file && known->name == name)
            return index->functions.slots[at] - 1;
    }
    profile->functions = grow(profile->functions, profile->function_count, &index->function_room,
                              sizeof *profile->functions);
    profile->functions[profile->function_count] =
        (struct cost_function){object, file, name, add_values(profile)};
    index->functions.slots[at] = ++profile->function_count;
    index->functions.count = profile->function_count;
    return profile->function_count - 1;
}

void costs_add_line(struct cost_profile *profile, uint32_t function, const char *file,
                    uint32_t line, const uint64_t *values) {
    struct cost_index *index = profile->index;
    grow_table(profile, &index->lines);
    size_t mask = index->lines.room - 1, at = (hash_of_line(function, file, line) >> 20) & mask;
    add_to(profile, profile->functions[function].own, values);
    for (unsigned i = 0; i < profile->event_count; i++)
        profile->totals[i] += values[i];
    for (; index->lines.slots[at]; at = (at + 1) & mask) {
        const struct cost_line *known = &profile->lines[index->lines.slots[at] - 1];
        if (known->function == function && known->file == file && known->line == line) {
            add_to(profile, known->own, values);
            return;
        }
    }
    profile->lines =
        grow(profile->lines, profile->line_count, &index->line_room, sizeof *profile->lines);
    size_t own = add_values(profile);
    profile->lines[profile->line_count] = (struct cost_line){function, file, line, own};
    index->lines.slots[at] = ++profile->line_count;
    index->lines.count = profile->line_count;
    add_to(profile, own, values);
}

void costs_add_call(struct cost_profile *profile, const struct cost_call *call,
                    const uint64_t *values) {
    struct cost_index *index = profile->index;
    grow_table(profile, &index->calls);
    size_t mask = index->calls.room - 1, at = (hash_of_call(call) >> 20) & mask;
    profile->has_calls = true;
    for (; index->calls.slots[at]; at = (at + 1) & mask) {
        struct cost_call *known = &profile->calls[index->calls.slots[at] - 1];
        if (known->caller == call->caller && known->callee == call->callee &&
            known->file == call->file && known->line == call->line) {
            known->count += call->count;
            add_to(profile, known->inclusive, values);
            return;
        }
    }
    profile->calls =
        grow(profile->calls, profile->call_count, &index->call_room, sizeof *profile->calls);
    size_t inclusive = add_values(profile);
    profile->calls[profile->call_count] = *call;
    profile->calls[profile->call_count].inclusive = inclusive;
    index->calls.slots[at] = ++profile->call_count;
    index->calls.count = profile->call_count;
    add_to(profile, inclusive, values);
}

static struct cost_instruction *instruction_at(struct cost_profile *profile,
                                               const struct cost_instruction *wanted) {
    struct cost_index *index = profile->index;
    grow_table(profile, &index->instructions);
    size_t mask = index->instructions.room - 1;
    size_t at = (hash_of_instruction(wanted->function, wanted->address) >> 20) & mask;
    for (; index->instructions.slots[at]; at = (at + 1) & mask) {
        struct cost_instruction *known = &profile->instructions[index->instructions.slots[at] - 1];
        if (known->function == wanted->function && known->address == wanted->address)
            return known;
    }
    profile->instructions = grow(profile->instructions, profile->instruction_count,
                                 &index->instruction_room, sizeof *profile->instructions);
    struct cost_instruction *added = &profile->instructions[profile->instruction_count];
    *added = *wanted;
    added->count = 0;
    added->own = add_values(profile);
    added->inclusive = add_values(profile);
    index->instructions.slots[at] = ++profile->instruction_count;
    index->instructions.count = profile->instruction_count;
    return added;
}

void costs_add_instruction(struct cost_profile *profile, const struct cost_instruction *added,
                           const uint64_t *values) {
    struct cost_instruction *known = instruction_at(profile, added);
    if (added->callee == UINT32_MAX) {
        add_to(profile, known->own, values);
        return;
    }
    known->callee = added->callee;
    known->count += added->count;
    add_to(profile, known->inclusive, values);
}

void costs_add_jump(struct cost_profile *profile, const struct cost_jump *jump) {
    profile->jumps = grow(profile->jumps, profile->jump_count, &profile->index->jump_room,
                          sizeof *profile->jumps);
    profile->jumps[profile->jump_count++] = *jump;
}
