#include "report/diagnose/diagnose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "report/diagnose/parts.h"
#include "report/heap/rows.h"

// ---- looking -----------------------------------------------------------------------------------

// Moments up to this position on the axis, of `end` in all.
static void note_moments(struct examination *it, enum axis axis, uint64_t position, uint64_t end,
                         uint64_t time) {
    struct moments *moments = &it->moments[axis];
    for (; moments->next < MOMENTS; moments->next++) {
        size_t at = moments->next;
        if (position < end / MOMENTS * (at + 1))
            return;
        moments->totals[at] = it->live_bytes;
        moments->events[at] = it->events;
        moments->frees[at] = it->frees;
        moments->times[at] = time < it->end ? time : it->end;
        for (size_t i = 0; i < it->site_count; i++)
            if (it->sites[i].series[axis])
                it->sites[i].series[axis][at] = it->sites[i].live_bytes;
    }
}

static struct thread_use *thread_at(struct examination *it, uint32_t thread) {
    it->threads = base_reach(it->threads, &it->thread_count, thread, sizeof *it->threads);
    return &it->threads[thread];
}

static void change(struct examination *it, const struct heap_block *block, bool more) {
    uint64_t size = more ? block->size : -block->size;
    it->live_bytes += size;
    if (block->stack >= it->site_count)
        return;
    struct site *site = &it->sites[block->stack];
    site->live_bytes += size;
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
    note_moments(it, BY_TIME, event->time, it->end, event->time);
    if (event->kind == HEAP_SKIPPED)
        return;
    it->events++;
    it->last_event = event->time;
    if (event->kind == HEAP_ALLOCATED)
        note_moments(it, BY_ALLOCATIONS, it->allocations++, it->file->summary.total.allocated,
                     event->time);
    it->frees += event->kind == HEAP_FREED;
    thread_at(it, event->thread)->last = event->time;
    if (event->kind == HEAP_FREED || event->kind == HEAP_RESIZED)
        change(it, &event->before, false);
    if (event->kind == HEAP_ALLOCATED || event->kind == HEAP_RESIZED)
        change(it, event->block, true);
    if (event->kind == HEAP_RESIZED)
        note_resize(it, event);
}

static void on_held(void *context, uint32_t stack, const char *holder) {
    struct examination *it = context;
    if (stack >= it->site_count)
        return;
    free(it->sites[stack].holder);
    it->sites[stack].holder = base_copy(holder);
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
    struct thread_use *thread = thread_at(it, block->thread);
    thread->bytes += block->size;
    if (block->thread > 1 && thread->last < it->end / 2) {
        site->idle_bytes += block->size;
        site->idle_blocks++;
    }
}

static void on_sample(void *context, const struct heap_sample *sample) {
    struct examination *it = context;
    it->resident = sample->resident;
}

static void on_end(void *context, uint64_t time) {
    for (enum axis axis = 0; axis < AXES; axis++)
        note_moments(context, axis, UINT64_MAX, 0, time);
}

static char *look(int fd, const struct heap_file *file, struct examination *it) {
    *it = (struct examination){.file = file,
                               .end = file->summary.time,
                               .peak_time = file->summary.peak_time,
                               .site_count = file->summary.site_count};
    it->sites = calloc(it->site_count + 1, sizeof *it->sites);
    for (size_t i = 0; it->sites && i < it->site_count; i++)
        for (enum axis axis = 0; axis < AXES; axis++)
            if (file->summary.sites[i].peak_bytes >= DIAGNOSIS_GROWTH_BYTES)
                it->sites[i].series[axis] = calloc(MOMENTS, sizeof(uint64_t));
    if (!it->sites)
        abort();
    struct heap_sink sink = {.context = it,
                             .event = on_event,
                             .held = on_held,
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
    for (size_t i = 0; i < it->site_count; i++) {
        for (enum axis axis = 0; axis < AXES; axis++)
            free(it->sites[i].series[axis]);
        free(it->sites[i].holder);
    }
    free(it->sites);
    free(it->threads);
}

// ---- results -----------------------------------------------------------------------------------

static void add_frame(void *context, const struct heap_place *place,
                      const struct symbol_frame *frame) {
    char *label = heap_file_label(frame);
    char *path = result_path(frame);
    diagnosis_add_frame(context, &(struct result_frame){.function = label,
                                                        .object = (char *)frame->object,
                                                        .path = path,
                                                        .line = frame->line,
                                                        .address = place ? place->address : 0});
    free(label);
    free(path);
}

// Who holds what grows, if leaks were searched for.
static void name_holder(const struct examination *it, struct diagnosis *diagnosis) {
    bool is_growth = diagnosis->kind == DIAGNOSIS_GROWS || diagnosis->kind == DIAGNOSIS_HANDLERS;
    if (!is_growth || diagnosis->stack >= it->site_count || !it->sites[diagnosis->stack].holder)
        return;
    free(diagnosis->holder);
    diagnosis->holder = base_copy(it->sites[diagnosis->stack].holder);
}

char *diagnose(int fd, const struct heap_file *file, struct diagnoses *diagnoses) {
    struct examination it;
    *diagnoses = (struct diagnoses){0};
    char *problem = look(fd, file, &it);
    if (!problem) {
        diagnose_sites(&it, diagnoses);
        diagnose_growth(&it, diagnoses);
        diagnose_whole(&it, diagnoses);
        for (size_t i = 0; i < diagnoses->count; i++) {
            struct diagnosis *diagnosis = &diagnoses->items[i];
            name_holder(&it, diagnosis);
            if (diagnosis->stack)
                rows_frames(file, diagnosis->stack, add_frame, diagnosis);
        }
        diagnoses_sort(diagnoses);
    }
    free_examination(&it);
    return problem;
}

char *diagnose_slope(int fd, const struct heap_file *file, double *slope) {
    struct examination it;
    char *problem = look(fd, file, &it);
    if (!problem)
        *slope = diagnose_rise(&it);
    free_examination(&it);
    return problem;
}
