// The blocks that a process had before it was attached to. Nobody knows where they were allocated:
// their stack is one of names. The outer frame says that they are from before, the inner one what
// holds them.
#include <stdlib.h>
#include <string.h>

#include "tools/shared/supervisor/recorded/recorded.h"

// To the names of addresses, such a frame is a piece of generated code, outside all memory.
#define FRAMES_START (1ull << 56)
#define FRAME_SIZE   4096ull
#define MOST_HOLDERS 10000 // all others are one
#define OUTER        "allocated before Quern attached"
#define OTHERS       "held by many others"

struct taking {
    struct recorded_process *process;
    uint64_t next_frame, outer;
    char *holder; // of the stack in hand
    uint32_t stack;
    size_t holder_count;
    uint64_t blocks, bytes;
};

// A return address in a new frame.
static uint64_t make_frame(struct taking *taking, const char *name) {
    const struct recorded_process *process = taking->process;
    uint64_t start = taking->next_frame;
    taking->next_frame += FRAME_SIZE;
    struct text bracketed = {0};
    text_format(&bracketed, "[%s]", name);
    symbols_add_code(process->recorded->run->symbols, process->pid, start, start + FRAME_SIZE,
                     bracketed.bytes, NULL, 0);
    text_free(&bracketed);
    return start + FRAME_SIZE / 2;
}

static void begin_holder(struct taking *taking, const char *holder) {
    free(taking->holder);
    taking->holder = base_copy(holder);
    if (taking->holder_count >= MOST_HOLDERS)
        return;
    const char *name = ++taking->holder_count == MOST_HOLDERS ? OTHERS : holder;
    const uint64_t pcs[] = {make_frame(taking, name), taking->outer};
    taking->stack = heap_source_new_stack(taking->process->source, pcs, 2);
}

static void take_block(void *context, const char *holder, uint64_t address, uint64_t size) {
    struct taking *taking = context;
    if (!taking->holder || strcmp(taking->holder, holder) != 0)
        begin_holder(taking, holder);
    if (!heap_source_add_block(taking->process->source, address, size, taking->stack))
        return;
    taking->blocks++;
    taking->bytes += size;
}

static void say_taken(const struct taking *taking, const struct before *before) {
    const struct recorded_process *process = taking->process;
    char bytes[32], blocks[32];
    unsigned stops;
    uint64_t pause = before_pause(before, &stops);
    if (log_shows(process->log, 0))
        log_format(process->log, process->pid, LOG_USER,
                   "From before: %s bytes in %s blocks; for a copy of its memory, it was stopped "
                   "%u time%s, for %.1f ms at most",
                   text_number(bytes, taking->bytes), text_number(blocks, taking->blocks), stops,
                   stops == 1 ? "" : "s", (double)pause / 1e6);
}

void recorded_look_before(struct recorded_process *process) {
    process->before = before_start(process->pid, process->recorded->census == CENSUS_YES);
}

void recorded_take_before(struct recorded_process *process, bool wait) {
    struct before *before = process->before;
    struct taking taking = {.process = process, .next_frame = FRAMES_START};
    if (!before || (!wait && !before_is_done(before)))
        return;
    before_wait(before);
    process->before = NULL;
    if (before_problem(before)) {
        if (log_shows(process->log, 0))
            log_format(process->log, process->pid, LOG_USER, "Blocks from before are not known: %s",
                       before_problem(before));
    } else {
        taking.outer = make_frame(&taking, OUTER);
        before_blocks(before, process->recorded->run->symbols, take_block, &taking);
        say_taken(&taking, before);
    }
    heap_source_note_frees(process->source, false);
    free(taking.holder);
    before_free(before);
}
