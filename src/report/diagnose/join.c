// Joins stacks to causes.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "report/diagnose/causes.h"
#include "report/heap/rows.h"
#include "report/shared/own.h"

// ---- own functions of a stack ------------------------------------------------------------------

// The first own functions of a stack, from the innermost on. A closure is a part of the function
// that it is in, whether that one calls it or somebody else does.
struct chain {
    struct own_search search;
    struct text keys[CAUSE_CALLERS]; // what tells them apart
    size_t count;
    char *name, *path; // of the last one
};

static void chain_free(struct chain *chain) {
    for (size_t i = 0; i < CAUSE_CALLERS; i++)
        text_free(&chain->keys[i]);
    free(chain->name);
    free(chain->path);
}

static void add_function(struct chain *chain, const struct heap_place *place,
                         const struct symbol_frame *frame, const char *path) {
    struct text key = {0};
    char *label = symbol_frame_label(frame);
    size_t length = own_without_closures(label);
    // Functions without a name are told apart by the call.
    uint64_t address = !frame->name && place ? place->address : 0;
    text_format(&key, "%.*s\n%s\n%" PRIx64, (int)(length ? length : strlen(label)), label,
                path ? path : "", address);
    bool is_within = chain->count && own_is_within(chain->name, chain->path, label, path) &&
                     (frame->name || strcmp(chain->keys[chain->count - 1].bytes, key.bytes) == 0);
    if (is_within)
        text_free(&chain->keys[--chain->count]);
    if (chain->count < CAUSE_CALLERS)
        chain->keys[chain->count++] = key;
    else
        text_free(&key);
    free(chain->name);
    free(chain->path);
    chain->name = label;
    chain->path = path ? base_copy(path) : NULL;
}

static void look_for_own(void *context, const struct heap_place *place,
                         const struct symbol_frame *frame) {
    struct chain *chain = context;
    char *path = result_path(frame);
    bool had_own = chain->search.found;
    bool is_first = own_search_next(&chain->search, frame->name, path, frame->object);
    bool is_nameless = !frame->name && own_object(frame->object);
    if (had_own && !chain->search.found) {
        // That was the allocator.
        chain_free(chain);
        *chain = (struct chain){0};
    }
    if (is_first || is_nameless || (had_own && own_frame(frame->name, path, frame->object))) {
        chain->search.found = true;
        add_function(chain, place, frame, path);
    }
    free(path);
}

char *cause_key(const struct heap_file *file, uint32_t stack, size_t depth) {
    struct chain chain = {0};
    struct text key = {0};
    rows_frames(file, stack, look_for_own, &chain);
    for (size_t i = 0; i <= depth && i < chain.count; i++)
        text_format(&key, "%s\n", chain.keys[i].bytes);
    if (!chain.count)
        text_format(&key, "%" PRIu32, stack);
    chain_free(&chain);
    return text_take(&key);
}

// Whether a function is among the callers of the one that the cause of a stack is about.
static bool has_caller(const struct heap_file *file, uint32_t stack, size_t depth,
                       const struct text *key) {
    struct chain chain = {0};
    bool found = false;
    rows_frames(file, stack, look_for_own, &chain);
    for (size_t i = depth + 1; i < chain.count && !found; i++)
        found = strcmp(chain.keys[i].bytes, key->bytes) == 0;
    chain_free(&chain);
    return found;
}

bool causes_calls(const struct causes *causes, const struct growth_cause *caller,
                  const struct growth_cause *called) {
    const struct heap_file *file = causes->growth->file;
    struct chain chain = {0};
    rows_frames(file, caller->stack, look_for_own, &chain);
    bool calls = chain.count > caller->depth;
    for (size_t i = 0; calls && i < called->stack_count; i++)
        calls = has_caller(file, called->stacks[i], called->depth, &chain.keys[caller->depth]);
    chain_free(&chain);
    return calls;
}

// ---- joining -----------------------------------------------------------------------------------

#define SMALL 8 // times smaller: not worth a look beside the larger one

// Whose they are: of several threads only if they are of a size.
static void add_owners(struct growth_boxes *to, const struct growth_boxes *from) {
    if (from->largest * SMALL < to->largest)
        return;
    if (to->largest * SMALL < from->largest)
        to->threads = to->is_shared = 0;
    bool is_other = to->threads && to->thread != from->thread;
    to->threads = from->threads > to->threads ? from->threads : to->threads;
    to->threads += is_other && to->threads < 2;
    to->thread = from->thread;
    to->is_shared |= from->is_shared;
}

static void add_boxes(struct growth_boxes *to, const struct growth_boxes *from) {
    if (from->count)
        add_owners(to, from);
    to->content += from->content;
    to->count += from->count;
    if (from->largest > to->largest) {
        to->largest = from->largest;
        to->steps = from->steps;
    }
}

static void add_stack(const struct causes *causes, struct growth_cause *cause, uint32_t number) {
    const struct growth *growth = causes->growth;
    const struct growth_stack *stack = &growth->stacks[number];
    *vector_push(cause->stacks, cause->stack_count) = number;
    for (size_t i = 0; i < growth->moments[causes->axis].count; i++)
        cause->levels[i] += stack->levels[causes->axis][i];
    cause->at_turn += stack->at_turn;
    cause->blocks += stack->blocks_at_turn;
    if (!cause->stack || stack->at_turn > growth->stacks[cause->stack].at_turn)
        cause->stack = number;
    if (stack->holder && !cause->holder)
        cause->holder = stack->holder;
    add_boxes(&cause->boxes, &causes->boxes[number]);
}

// Adds causes of these stacks, joined by their first own functions up to this depth.
static void join_stacks(struct causes *causes, const uint32_t *stacks, size_t count, size_t depth) {
    struct map_texts names = {0};
    size_t first = causes->count;
    for (size_t i = 0; i < count; i++) {
        bool is_new;
        char *key = cause_key(causes->growth->file, stacks[i], depth);
        size_t number = first + map_texts_add(&names, key, strlen(key), &is_new);
        if (is_new)
            *vector_push(causes->items, causes->count) =
                (struct growth_cause){.axis = causes->axis, .depth = depth};
        add_stack(causes, &causes->items[number], stacks[i]);
        free(key);
    }
    map_texts_free(&names);
}

static void add_box(const struct causes *causes, const struct container *box) {
    struct growth_boxes *boxes = &causes->boxes[box->stack];
    add_boxes(boxes, &(struct growth_boxes){.content = container_content(box, causes->growth->work),
                                            .count = 1,
                                            .largest = box->size,
                                            .steps = box->steps,
                                            .is_shared = box->is_shared,
                                            .threads = 1,
                                            .thread = box->thread});
}

void causes_join(struct causes *causes, const struct growth *growth, enum growth_axis axis) {
    const struct growth_moments *moments = &growth->moments[axis];
    *causes = (struct causes){.growth = growth, .axis = axis};
    causes->boxes = calloc(growth->stack_count + 1, sizeof *causes->boxes);
    if (!causes->boxes)
        abort();
    for (size_t i = 0; i < moments->box_count; i++)
        add_box(causes, &moments->boxes[i]);
    uint32_t *stacks = base_allocate((growth->stack_count + 1) * sizeof *stacks);
    size_t count = 0;
    for (size_t i = 1; i < growth->stack_count; i++)
        if (growth->stacks[i].levels[axis])
            stacks[count++] = (uint32_t)i;
    join_stacks(causes, stacks, count, 0);
    free(stacks);
}

size_t causes_split(struct causes *causes, size_t index) {
    const struct growth_cause *cause = &causes->items[index];
    size_t before = causes->count;
    if (cause->depth + 1 < CAUSE_DEPTH)
        join_stacks(causes, cause->stacks, cause->stack_count, cause->depth + 1);
    return causes->count - before;
}

static void free_cause(struct growth_cause *cause) {
    free(cause->stacks);
}

void causes_remove(struct causes *causes, size_t index) {
    free_cause(&causes->items[index]);
    causes->count--;
    for (size_t i = index; i < causes->count; i++)
        causes->items[i] = causes->items[i + 1];
}

void causes_free(struct causes *causes) {
    for (size_t i = 0; i < causes->count; i++)
        free_cause(&causes->items[i]);
    free(causes->items);
    free(causes->boxes);
}
