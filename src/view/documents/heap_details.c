#include "view/documents/heap_details.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define OTHERS HEAP_DETAILS_SITES

// ---- which stacks ----

static void choose_sites(struct heap_details *details, const struct summary *summary) {
    details->stack_count = summary->site_count;
    details->site_of = base_allocate(summary->site_count + 1);
    memset(details->site_of, OTHERS, summary->site_count + 1);
    while (details->site_count < HEAP_DETAILS_SITES) {
        uint64_t most = 0;
        size_t best = 0;
        for (size_t i = 0; i < summary->site_count; i++) {
            if (details->site_of[i] == OTHERS && summary->sites[i].peak_bytes > most) {
                most = summary->sites[i].peak_bytes;
                best = i;
            }
        }
        if (!most)
            return;
        details->site_of[best] = (uint8_t)details->site_count;
        details->sites[details->site_count++] = (uint32_t)best;
    }
}

// ---- over time ----

static void note_steps(struct heap_details *details, uint64_t time) {
    while (time >= details->step_end && details->step < HEAP_DETAILS_STEPS) {
        memcpy(details->steps[details->step++], details->held, sizeof details->held);
        details->step_end = details->end / HEAP_DETAILS_STEPS * (details->step + 1);
    }
}

static uint64_t *held_by(struct heap_details *details, const struct heap_block *block) {
    return &details->held[block->stack < details->stack_count ? details->site_of[block->stack]
                                                              : OTHERS];
}

// ---- histograms ----

static void count_in(struct heap_details_bin *bins, uint64_t value, uint64_t bytes) {
    struct heap_details_bin *bin = &bins[value ? 64 - __builtin_clzll(value) : 0];
    bin->blocks++;
    bin->bytes += bytes;
}

static bool is_in(const struct heap_details *details, const struct heap_block *block) {
    return block->time >= details->from && block->time < details->to;
}

static void count_life(struct heap_details *details, const struct heap_block *block,
                       uint64_t time) {
    if (!is_in(details, block))
        return;
    uint64_t life = time > block->time ? time - block->time : 0;
    count_in(details->lives, life / RECORDING_TIME_SHARED, block->size);
}

static void on_event(void *context, const struct heap_event *event) {
    struct heap_details *details = context;
    note_steps(details, event->time);
    if (event->kind == HEAP_ALLOCATED && is_in(details, event->block))
        count_in(details->sizes, event->block->size, event->block->size);
    if (event->kind == HEAP_FREED || event->kind == HEAP_RESIZED)
        *held_by(details, &event->before) -= event->before.size;
    if (event->kind == HEAP_ALLOCATED || event->kind == HEAP_RESIZED)
        *held_by(details, event->block) += event->block->size;
    if (event->kind == HEAP_FREED)
        count_life(details, &event->before, event->time);
}

static void on_left(void *context, const struct heap_block *block, uint64_t time) {
    count_life(context, block, time);
}

static void on_end(void *context, uint64_t time) {
    note_steps(context, UINT64_MAX);
}

// Sums by thread of a window need the filter of everybody else.
static bool read_threads(struct heap_details *details, int fd, const struct heap_filter *window) {
    struct heap_sink sink;
    struct heap_file file;
    heap_threads_sink(&details->threads, &sink);
    char *problem = heap_filter_read(fd, &file, window, &sink, 1);
    bool fine = !problem;
    heap_file_free(&file);
    free(problem);
    return fine && lseek(fd, 0, SEEK_SET) == 0;
}

struct heap_details *heap_details_read(const char *path, const struct heap_file *first,
                                       const struct heap_filter *window) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    struct heap_details *details = base_allocate(sizeof *details);
    *details = (struct heap_details){.end = first->summary.time,
                                     .step_end = first->summary.time / HEAP_DETAILS_STEPS,
                                     .from = window->from,
                                     .to = window->to};
    choose_sites(details, &first->summary);
    bool is_part = window->from || window->to != UINT64_MAX;
    bool fine = !is_part || read_threads(details, fd, window);
    struct heap_sink sinks[2] = {
        {.context = details, .event = on_event, .left = on_left, .end = on_end}};
    if (!is_part)
        heap_threads_sink(&details->threads, &sinks[1]);
    if (fine) {
        struct recording_info info;
        fine = recording_read(fd, sinks, is_part ? 1 : 2, &info);
        recording_info_free(&info);
    }
    close(fd);
    if (fine)
        return details;
    heap_details_free(details);
    return NULL;
}

void heap_details_free(struct heap_details *details) {
    heap_threads_free(&details->threads);
    free(details->site_of);
    free(details);
}
