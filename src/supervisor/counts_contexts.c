#include "supervisor/counts_build.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const struct counts_context *contexts_in(const uint8_t *part, uint32_t *count) {
    const struct counts_thread *thread = (const struct counts_thread *)part;
    *count = thread->contexts < COUNTS_CONTEXTS ? thread->contexts : COUNTS_CONTEXTS - 1;
    return (const struct counts_context *)(part + COUNTS_AT_CONTEXTS);
}

// Without a context, code belongs to the first function that there is: none.
uint32_t contexts_number(struct counts_build *build, const uint8_t *part, uint32_t context) {
    uint32_t count;
    const struct counts_context *contexts = contexts_in(part, &count);
    return context && context <= count ? build_context(build, &contexts[context])
                                       : build_function(build, 0, 1);
}

// Ids in the order of their functions, so that a context's are found without looking at all.
static void sort_ids(struct counts_build *build) {
    uint32_t functions = build->function_count;
    build->first_id = base_allocate((functions + 2ul) * sizeof *build->first_id);
    memset(build->first_id, 0, (functions + 2ul) * sizeof *build->first_id);
    build->by_function = base_allocate((build->id_count + 1ul) * sizeof *build->by_function);
    for (uint32_t i = 1; i < build->id_count; i++)
        if (build->ids[i].function < functions)
            build->first_id[build->ids[i].function + 2]++;
    for (uint32_t i = 2; i < functions + 2; i++)
        build->first_id[i] += build->first_id[i - 1];
    for (uint32_t i = 1; i < build->id_count; i++)
        if (build->ids[i].function < functions)
            build->by_function[build->first_id[build->ids[i].function + 1]++] = i;
}

static void read_context(struct counts_build *build, const uint8_t *part,
                         const struct counts_context *context) {
    const struct counts_thread *thread = (const struct counts_thread *)part;
    uint32_t number = build_context(build, context);
    if (context->alone)
        for (uint32_t i = 1; i < build->id_count; i++)
            build_counter(build, thread, context->area, i, number);
    else if (context->function < build->function_count)
        for (uint32_t i = build->first_id[context->function];
             i < build->first_id[context->function + 1]; i++)
            build_counter(build, thread, context->area, build->by_function[i], number);
}

void contexts_read(struct counts_build *build, const uint8_t *part) {
    const struct counts_thread *thread = (const struct counts_thread *)part;
    uint32_t count;
    const struct counts_context *contexts = contexts_in(part, &count);
    uint8_t *in_first = base_allocate(build->function_count + 1ul);
    memset(in_first, 0, build->function_count + 1ul);
    if (!build->by_function)
        sort_ids(build);
    for (uint32_t i = 1; i <= count; i++) {
        if (contexts[i].area + COUNTS_SKIPPED >= COUNTS_AREAS)
            continue;
        read_context(build, part, &contexts[i]);
        if (contexts[i].area == 0 && contexts[i].function < build->function_count)
            in_first[contexts[i].function] = 1;
    }
    // Code that has run while no function was active, and never in one.
    for (uint32_t i = 1; i < build->id_count; i++)
        if (build->ids[i].function < build->function_count && !in_first[build->ids[i].function])
            build_counter(build, thread, 0, i, BUILD_OWN);
    free(in_first);
}
