#include "report/heap/filter.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/glob.h"
#include "base/text.h"
#include "report/heap/rows.h"

// Mark of a block that does not pass; massif has the lowest one.
#define LEFT_OUT (1u << 31)

struct pass {
    const struct heap_filter *filter;
    const struct heap_sink *sinks; // behind the filter
    size_t count;
    uint8_t *lives; // by number of block, a bit each: its lifetime passes
    size_t lives_room;
    bool *stacks; // by number: they pass; NULL: all do
    size_t stack_count;
};

// ---- the first time ----

static void note_life(struct pass *pass, const struct heap_block *block, uint64_t end) {
    uint64_t life = end > block->time ? end - block->time : 0;
    size_t at = block->number / 8;
    pass->lives = base_reach(pass->lives, &pass->lives_room, at, sizeof *pass->lives);
    if (life >= pass->filter->life_from && life < pass->filter->life_to)
        pass->lives[at] |= (uint8_t)(1u << block->number % 8);
}

static void note_event(void *context, const struct heap_event *event) {
    if (event->kind == HEAP_FREED)
        note_life(context, &event->before, event->time);
}

static void note_left(void *context, const struct heap_block *block, uint64_t time) {
    note_life(context, block, time);
}

static bool life_passes(const struct pass *pass, uint64_t number) {
    return !pass->lives ||
           (number / 8 < pass->lives_room && pass->lives[number / 8] >> number % 8 & 1);
}

struct search {
    const struct heap_filter *filter;
    bool function, library;
};

static void look_at_frame(void *context, const struct heap_place *place,
                          const struct symbol_frame *frame) {
    struct search *search = context;
    const struct heap_filter *filter = search->filter;
    if (filter->function && frame->name)
        search->function |= glob_match_any(filter->function, frame->name);
    if (filter->library && frame->object)
        search->library |= glob_match_any(filter->library, frame->object) ||
                           glob_match_any(filter->library, heap_file_base(frame->object));
}

static void choose_stacks(struct pass *pass, const struct heap_file *file) {
    pass->stack_count = file->summary.site_count;
    pass->stacks = base_allocate((pass->stack_count + 1) * sizeof *pass->stacks);
    for (size_t i = 0; i < pass->stack_count; i++) {
        struct search search = {pass->filter, !pass->filter->function, !pass->filter->library};
        if (rows_has(&file->summary.sites[i]))
            rows_frames(file, (uint32_t)i, look_at_frame, &search);
        pass->stacks[i] = search.function && search.library;
    }
}

// ---- the second time ----

static bool passes(const struct pass *pass, const struct heap_block *block) {
    const struct heap_filter *filter = pass->filter;
    return block->time >= filter->from && block->time < filter->to &&
           block->size >= filter->size_from && block->size < filter->size_to &&
           (!pass->stacks || (block->stack < pass->stack_count && pass->stacks[block->stack])) &&
           life_passes(pass, block->number);
}

static void send_left(const struct pass *pass, const struct heap_block *block, uint64_t time) {
    for (size_t i = 0; i < pass->count; i++)
        if (pass->sinks[i].left && !(block->marks & LEFT_OUT) && block->time < pass->filter->to)
            pass->sinks[i].left(pass->sinks[i].context, block, time);
}

// The first event of a block after the window shows what the block was at its end.
static void note_after(const struct pass *pass, const struct heap_event *event) {
    if (event->kind == HEAP_FREED || event->kind == HEAP_RESIZED)
        send_left(pass, &event->before, pass->filter->to);
    if (event->kind == HEAP_RESIZED)
        event->block->marks |= LEFT_OUT;
}

static void on_event(void *context, const struct heap_event *event) {
    struct pass *pass = context;
    struct heap_event told = *event;
    if (event->time >= pass->filter->to) {
        note_after(pass, event);
        return;
    }
    if (event->kind == HEAP_ALLOCATED && !passes(pass, event->block))
        event->block->marks |= LEFT_OUT;
    uint32_t marks = event->kind == HEAP_FREED     ? event->before.marks
                     : event->kind == HEAP_SKIPPED ? 0
                                                   : event->block->marks;
    if (marks & LEFT_OUT)
        told = (struct heap_event){.kind = HEAP_SKIPPED,
                                   .thread = event->thread,
                                   .time = event->time,
                                   .is_merged = event->is_merged};
    for (size_t i = 0; i < pass->count; i++)
        if (pass->sinks[i].event)
            pass->sinks[i].event(pass->sinks[i].context, &told);
}

#define FORWARD(name, parameters, arguments)                                                       \
    static void on_##name parameters {                                                             \
        struct pass *pass = context;                                                               \
        for (size_t i = 0; i < pass->count; i++)                                                   \
            if (pass->sinks[i].name)                                                               \
                pass->sinks[i].name arguments;                                                     \
    }

#define TO pass->sinks[i].context

FORWARD(stack, (void *context, uint32_t id, const uint64_t *pcs, size_t count, bool truncated),
        (TO, id, pcs, count, truncated))
FORWARD(thread, (void *context, uint32_t thread, int tid), (TO, thread, tid))
FORWARD(name, (void *context, uint32_t thread, const char *name), (TO, thread, name))
FORWARD(mapping, (void *context, const struct heap_mapping *mapping), (TO, mapping))

// Nothing is known of the blocks that were merged but the stack.
static void on_corrected(void *context, const struct heap_correction *correction) {
    struct pass *pass = context;
    if (pass->stacks && !(correction->stack < pass->stack_count && pass->stacks[correction->stack]))
        return;
    for (size_t i = 0; i < pass->count; i++)
        if (pass->sinks[i].corrected)
            pass->sinks[i].corrected(TO, correction);
}

static void on_region(void *context, const struct heap_region *region) {
    struct pass *pass = context;
    if (region->time >= pass->filter->to)
        return;
    for (size_t i = 0; i < pass->count; i++)
        if (pass->sinks[i].region)
            pass->sinks[i].region(TO, region);
}

static void on_sample(void *context, const struct heap_sample *sample) {
    struct pass *pass = context;
    if (sample->time < pass->filter->from || sample->time >= pass->filter->to)
        return;
    for (size_t i = 0; i < pass->count; i++)
        if (pass->sinks[i].sample)
            pass->sinks[i].sample(TO, sample);
}

static void on_left(void *context, const struct heap_block *block, uint64_t time) {
    struct pass *pass = context;
    send_left(pass, block, time < pass->filter->to ? time : pass->filter->to);
}

static void on_mark(void *context, const struct heap_mark *mark) {
    struct pass *pass = context;
    if (mark->time >= pass->filter->to)
        return;
    for (size_t i = 0; i < pass->count; i++)
        if (pass->sinks[i].mark)
            pass->sinks[i].mark(TO, mark);
}

static void on_end(void *context, uint64_t time) {
    struct pass *pass = context;
    uint64_t end = time < pass->filter->to ? time : pass->filter->to;
    for (size_t i = 0; i < pass->count; i++)
        if (pass->sinks[i].end)
            pass->sinks[i].end(TO, end);
}

// ---- both ----

static char *read_first(int fd, struct pass *pass) {
    struct heap_file file;
    bool needs_lives = pass->filter->life_from || pass->filter->life_to != UINT64_MAX;
    struct heap_sink lives = {.context = pass, .event = note_event, .left = note_left};
    char *problem = heap_file_read(fd, &file, &lives, needs_lives);
    if (!problem && (pass->filter->function || pass->filter->library))
        choose_stacks(pass, &file);
    if (!problem && needs_lives && !pass->lives)
        pass->lives = base_allocate(1);
    heap_file_free(&file);
    if (!problem && lseek(fd, 0, SEEK_SET) < 0)
        problem = base_copy("it cannot be read twice");
    return problem;
}

char *heap_filter_read(int fd, struct heap_file *file, const struct heap_filter *filter,
                       const struct heap_sink *sinks, size_t count) {
    if (!filter)
        return heap_file_read(fd, file, sinks, count);
    struct heap_sink behind[HEAP_FILE_SINKS + 1];
    if (count > HEAP_FILE_SINKS)
        abort();
    struct pass pass = {.filter = filter, .sinks = behind, .count = count + 1};
    char *problem = read_first(fd, &pass);
    *file = (struct heap_file){0};
    if (!problem) {
        struct heap_sink sink = {.context = &pass,
                                 .event = on_event,
                                 .stack = on_stack,
                                 .thread = on_thread,
                                 .name = on_name,
                                 .mapping = on_mapping,
                                 .region = on_region,
                                 .sample = on_sample,
                                 .corrected = on_corrected,
                                 .left = on_left,
                                 .mark = on_mark,
                                 .end = on_end};
        for (size_t i = 0; i < count; i++)
            behind[i + 1] = sinks[i];
        problem = heap_file_read_through(fd, file, &sink, &behind[0]);
    }
    free(pass.lives);
    free(pass.stacks);
    return problem;
}
