#include "report/diagnose/diagnose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "report/diagnose/parts.h"
#include "report/heap/rows.h"

// ---- looking -----------------------------------------------------------------------------------

static void note_moments(struct examination *it, uint64_t time) {
    for (; it->moment < MOMENTS && time >= it->end / MOMENTS * (it->moment + 1); it->moment++)
        it->totals[it->moment] = it->live_bytes;
}

static struct thread_use *thread_at(struct examination *it, uint32_t thread) {
    it->threads = base_reach(it->threads, &it->thread_count, thread, sizeof *it->threads);
    return &it->threads[thread];
}

static void note_resize(struct examination *it, const struct heap_event *event) {
    if (event->block->size <= event->before.size)
        return;
    event->block->marks++;
    if (event->block->stack >= it->site_count || event->block->size < CAPACITY_BYTES)
        return;
    it->sites[event->block->stack].enlarged = event->time;
}

static void on_event(void *context, const struct heap_event *event) {
    struct examination *it = context;
    it->growth_sink.event(it->growth, event);
    note_moments(it, event->time);
    if (event->kind == HEAP_SKIPPED)
        return;
    struct thread_use *thread = thread_at(it, event->thread);
    thread->last = event->time;
    if (!thread->first)
        thread->first = event->time;
    it->late_allocations += event->kind == HEAP_ALLOCATED && event->time >= it->end / 2;
    if (event->kind == HEAP_FREED || event->kind == HEAP_RESIZED)
        it->live_bytes -= event->before.size;
    if (event->kind == HEAP_ALLOCATED || event->kind == HEAP_RESIZED)
        it->live_bytes += event->block->size;
    if (event->kind == HEAP_ALLOCATED && event->block->stack < it->site_count)
        it->sites[event->block->stack].last = event->time;
    if (event->kind == HEAP_RESIZED)
        note_resize(it, event);
}

static void on_held(void *context, uint32_t stack, const char *holder) {
    struct examination *it = context;
    it->growth_sink.held(it->growth, stack, holder);
}

static void on_state(void *context, uint32_t thread, enum heap_thread_state state, uint64_t time) {
    struct thread_use *use = thread_at(context, thread);
    if (state == HEAP_THREAD_ENDED)
        use->ended = time;
    else
        use->ran = time;
}

// Whether a thread has ended or slept since the middle of the run. One that runs may use its memory
// without a word to the allocator. While nobody allocates, nobody has work.
static bool is_idle(const struct examination *it, const struct thread_use *thread) {
    enum { BUSY = 100 };
    uint64_t middle = it->end / 2;
    if (thread->last >= middle)
        return false;
    if (thread->ended)
        return thread->ended < middle;
    return thread->ran && thread->ran < middle && it->late_allocations >= BUSY;
}

static void note_idle(struct examination *it, const struct heap_block *block) {
    const struct thread_use *thread = thread_at(it, block->thread);
    struct site *site = &it->sites[block->stack];
    if (block->thread <= 1 || !is_idle(it, thread))
        return;
    site->idle_bytes += block->size;
    site->idle_blocks++;
    bool is_new;
    map_integers_add(&it->idle, (uint64_t)block->stack << 32 | block->thread, &is_new);
    if (!is_new)
        return;
    site->idle_threads++;
    if (thread->first > site->began_last)
        site->began_last = thread->first;
    if (!thread->ended)
        return;
    if (!site->gone_threads++ || thread->ended < site->gone_first)
        site->gone_first = thread->ended;
}

static void on_left(void *context, const struct heap_block *block, uint64_t time) {
    struct examination *it = context;
    if (block->stack >= it->site_count)
        return;
    struct site *site = &it->sites[block->stack];
    if (block->marks >= CAPACITY_STEPS && block->size >= CAPACITY_BYTES) {
        site->kept_bytes += block->size;
        site->kept_blocks++;
    }
    if (block->time < it->peak_time)
        site->old_blocks++;
    note_idle(it, block);
}

static void on_sample(void *context, const struct heap_sample *sample) {
    struct examination *it = context;
    it->resident = sample->anonymous == HEAP_UNKNOWN ? sample->resident : sample->anonymous;
}

static void on_end(void *context, uint64_t time) {
    struct examination *it = context;
    note_moments(it, UINT64_MAX);
    it->growth_sink.end(it->growth, time);
}

static char *look(int fd, const struct heap_file *file, struct examination *it) {
    *it = (struct examination){.file = file,
                               .end = file->summary.time,
                               .peak_time = file->summary.peak_time,
                               .site_count = file->summary.site_count,
                               .growth = growth_new(file)};
    growth_sink(it->growth, &it->growth_sink);
    it->sites = calloc(it->site_count + 1, sizeof *it->sites);
    if (!it->sites)
        abort();
    struct heap_sink sink = {.context = it,
                             .event = on_event,
                             .held = on_held,
                             .state = on_state,
                             .left = on_left,
                             .sample = on_sample,
                             .end = on_end};
    struct heap_file again;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return base_copy("it cannot be read twice");
    char *problem = heap_file_read(fd, &again, &sink, 1);
    heap_file_free(&again);
    return problem;
}

static void free_examination(struct examination *it) {
    growth_free(it->growth);
    free(it->sites);
    free(it->threads);
    map_integers_free(&it->idle);
}

// ---- results -----------------------------------------------------------------------------------

static void add_frame(void *context, const struct heap_place *place,
                      const struct symbol_frame *frame) {
    char *label = symbol_frame_label(frame);
    char *path = result_path(frame);
    diagnosis_add_frame(context, &(struct result_frame){.function = label,
                                                        .object = (char *)frame->object,
                                                        .path = path,
                                                        .line = frame->line,
                                                        .address = place ? place->address : 0});
    free(label);
    free(path);
}

void diagnoses_name(struct diagnoses *diagnoses, const struct heap_file *file) {
    for (size_t i = 0; i < diagnoses->count; i++)
        if (diagnoses->items[i].stack)
            rows_frames(file, diagnoses->items[i].stack, add_frame, &diagnoses->items[i]);
}

char *diagnose(int fd, const struct heap_file *file, struct diagnoses *diagnoses) {
    struct examination it;
    *diagnoses = (struct diagnoses){0};
    char *problem = look(fd, file, &it);
    if (!problem) {
        diagnose_sites(&it, diagnoses);
        growth_judge(it.growth, diagnoses);
        growth_judge_kept(it.growth, diagnoses);
        diagnose_whole(&it, diagnoses);
        diagnoses_name(diagnoses, file);
        diagnoses_sort(diagnoses);
    }
    free_examination(&it);
    return problem;
}
