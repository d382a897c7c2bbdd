#include "profile/costs/costs.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vector.h"

struct cost_index {
    struct map_texts strings;
    struct map functions, lines, calls, instructions; // by the profile's numbers of them
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
    map_texts_free(&index->strings);
    map_free(&index->functions);
    map_free(&index->lines);
    map_free(&index->calls);
    map_free(&index->instructions);
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

static uint64_t hash_of_function(const char *object, const char *file, const char *name) {
    return hash_add(hash_add(hash_add(1, (uint64_t)object), (uint64_t)file), (uint64_t)name);
}

static uint64_t hash_of_line(uint32_t function, const char *file, uint32_t line) {
    return hash_add(hash_add(hash_add(2, function), (uint64_t)file), line);
}

static uint64_t hash_of_call(const struct cost_call *call) {
    return hash_add(hash_of_line(call->caller, call->file, call->line), call->callee);
}

static uint64_t hash_of_instruction(uint32_t function, uint64_t address) {
    return hash_add(hash_add(4, function), address);
}

static size_t add_values(struct cost_profile *profile) {
    size_t at = profile->value_count;
    uint64_t *added = vector_extend(profile->values, profile->value_count, profile->event_count);
    if (profile->event_count)
        memset(added, 0, profile->event_count * sizeof *added);
    return at;
}

static void add_to(struct cost_profile *profile, size_t number, const uint64_t *values) {
    for (unsigned i = 0; i < profile->event_count; i++)
        profile->values[number + i] += values[i];
}

// ---- what is in it -----------------------------------------------------------------------------

const char *costs_string(struct cost_profile *profile, const char *text, size_t size) {
    struct map_texts *strings = &profile->index->strings;
    bool is_new;
    uint32_t number = map_texts_add(strings, text, size, &is_new);
    return strings->keys[number].bytes;
}

// Strings are kept once, so that their addresses tell them apart.
uint32_t costs_function(struct cost_profile *profile, const char *object, const char *file,
                        const char *name) {
    struct map *map = &profile->index->functions;
    uint64_t hash = hash_of_function(object, file, name);
    struct map_walk walk = map_walk(hash);
    for (uint32_t number; (number = map_next(map, &walk)) != MAP_NONE;) {
        const struct cost_function *known = &profile->functions[number];
        if (known->object == object && known->file == file && known->name == name)
            return number;
    }
    size_t own = add_values(profile);
    *vector_push(profile->functions, profile->function_count) =
        (struct cost_function){object, file, name, own};
    return map_add(map, hash);
}

void costs_add_line(struct cost_profile *profile, uint32_t function, const char *file,
                    uint32_t line, const uint64_t *values) {
    struct map *map = &profile->index->lines;
    uint64_t hash = hash_of_line(function, file, line);
    struct map_walk walk = map_walk(hash);
    add_to(profile, profile->functions[function].own, values);
    for (unsigned i = 0; i < profile->event_count; i++)
        profile->totals[i] += values[i];
    for (uint32_t number; (number = map_next(map, &walk)) != MAP_NONE;) {
        const struct cost_line *known = &profile->lines[number];
        if (known->function == function && known->file == file && known->line == line) {
            add_to(profile, known->own, values);
            return;
        }
    }
    size_t own = add_values(profile);
    *vector_push(profile->lines, profile->line_count) =
        (struct cost_line){function, file, line, own};
    map_add(map, hash);
    add_to(profile, own, values);
}

void costs_add_call(struct cost_profile *profile, const struct cost_call *call,
                    const uint64_t *values) {
    struct map *map = &profile->index->calls;
    uint64_t hash = hash_of_call(call);
    struct map_walk walk = map_walk(hash);
    profile->has_calls = true;
    for (uint32_t number; (number = map_next(map, &walk)) != MAP_NONE;) {
        struct cost_call *known = &profile->calls[number];
        if (known->caller == call->caller && known->callee == call->callee &&
            known->file == call->file && known->line == call->line) {
            known->count += call->count;
            add_to(profile, known->inclusive, values);
            return;
        }
    }
    struct cost_call *added = vector_push(profile->calls, profile->call_count);
    *added = *call;
    added->inclusive = add_values(profile);
    map_add(map, hash);
    add_to(profile, added->inclusive, values);
}

static struct cost_instruction *instruction_at(struct cost_profile *profile,
                                               const struct cost_instruction *wanted) {
    struct map *map = &profile->index->instructions;
    uint64_t hash = hash_of_instruction(wanted->function, wanted->address);
    struct map_walk walk = map_walk(hash);
    for (uint32_t number; (number = map_next(map, &walk)) != MAP_NONE;) {
        struct cost_instruction *known = &profile->instructions[number];
        if (known->function == wanted->function && known->address == wanted->address)
            return known;
    }
    struct cost_instruction *added = vector_push(profile->instructions, profile->instruction_count);
    *added = *wanted;
    added->count = 0;
    added->own = add_values(profile);
    added->inclusive = add_values(profile);
    map_add(map, hash);
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
    *vector_push(profile->jumps, profile->jump_count) = *jump;
}
