#include "profile/heap/summary.h"

#include <stdlib.h>

#include "base/text.h"

// What a stack held at the peak is noted when it changes for the first time afterwards.
static void note_peak(const struct summary *summary, struct summary_site *site) {
    if (site->peak_seen == summary->peak_number)
        return;
    site->peak_seen = summary->peak_number;
    site->peak = site->live;
    site->peak_bytes = site->live_bytes;
}

static struct summary_site *site_of(struct summary *summary, uint32_t stack) {
    summary->sites =
        base_reach(summary->sites, &summary->site_count, stack, sizeof *summary->sites);
    struct summary_site *site = &summary->sites[stack];
    note_peak(summary, site);
    return site;
}

static void gain(struct summary_site *site, uint64_t bytes) {
    site->live++;
    site->live_bytes += bytes;
}

static void lose(struct summary_site *site, uint64_t bytes) {
    site->live--;
    site->live_bytes -= bytes;
}

static void check_peak(struct summary *summary, uint64_t time) {
    if (summary->total.live_bytes <= summary->total.peak_bytes)
        return;
    summary->total.peak_bytes = summary->total.live_bytes;
    summary->total.peak = summary->total.live;
    summary->peak_number++;
    summary->peak_time = time;
    summary->resident.heap_peak_bytes = summary->resident.last.resident;
}

static void on_allocated(struct summary *summary, const struct heap_block *block) {
    struct summary_site *site = site_of(summary, block->stack);
    site->allocated++;
    site->allocated_bytes += block->size;
    gain(site, block->size);
    summary->total.allocated++;
    summary->total.allocated_bytes += block->size;
    gain(&summary->total, block->size);
    summary->truncated += stacks_get(&summary->stacks, block->stack)->truncated;
}

static void on_freed(struct summary *summary, const struct heap_block *block, bool temporary) {
    struct summary_site *site = site_of(summary, block->stack);
    lose(site, block->size);
    lose(&summary->total, block->size);
    site->temporary += temporary;
    summary->total.temporary += temporary;
    summary->freed++;
}

static void on_resized(struct summary *summary, const struct heap_block *before,
                       const struct heap_block *block) {
    uint64_t more = block->size > before->size ? block->size - before->size : 0;
    lose(site_of(summary, before->stack), before->size);
    struct summary_site *site = site_of(summary, block->stack);
    gain(site, block->size);
    site->allocated_bytes += more;
    summary->total.allocated_bytes += more;
    summary->total.live_bytes += block->size - before->size;
    summary->resized++;
}

static void on_event(void *context, const struct heap_event *event) {
    struct summary *summary = context;
    summary->latest =
        base_reach(summary->latest, &summary->latest_count, event->thread, sizeof *summary->latest);
    uint64_t unused, *latest = event->is_merged ? &unused : &summary->latest[event->thread];
    switch (event->kind) {
    case HEAP_ALLOCATED:
        on_allocated(summary, event->block);
        *latest = event->block->number;
        break;
    case HEAP_FREED:
        on_freed(summary, &event->before,
                 event->is_merged ? event->is_temporary : *latest == event->before.number);
        *latest = 0;
        break;
    case HEAP_RESIZED:
        on_resized(summary, &event->before, event->block);
        *latest = 0;
        break;
    case HEAP_SKIPPED:
        *latest = 0;
        break;
    }
    if (!event->is_merged)
        check_peak(summary, event->time);
    marks_event(&summary->marks, event);
}

static void on_corrected(void *context, const struct heap_correction *correction) {
    struct summary *summary = context;
    struct summary_site *site = site_of(summary, correction->stack);
    site->temporary += (uint64_t)correction->temporary;
    site->allocated_bytes += (uint64_t)correction->bytes;
    summary->total.temporary += (uint64_t)correction->temporary;
    summary->total.allocated_bytes += (uint64_t)correction->bytes;
    summary->resized += (uint64_t)correction->resized;
}

static void on_mark(void *context, const struct heap_mark *mark) {
    struct summary *summary = context;
    const struct summary_site *total = &summary->total;
    marks_add(&summary->marks, mark, total->live_bytes, total->live, total->allocated);
}

static void on_stack(void *context, uint32_t id, const uint64_t *pcs, size_t count,
                     bool truncated) {
    struct summary *summary = context;
    stacks_set(&summary->stacks, id, pcs, count, truncated);
}

static void on_thread(void *context, uint32_t thread, int tid) {
    struct summary *summary = context;
    summary->thread_list = base_reach(summary->thread_list, &summary->thread_room, thread,
                                      sizeof *summary->thread_list);
    summary->thread_list[thread] = (struct summary_thread){.tid = tid};
    summary->threads = thread;
}

static void on_name(void *context, uint32_t thread, const char *name) {
    struct summary *summary = context;
    if (thread == 0 || thread > summary->threads)
        return;
    free(summary->thread_list[thread].name);
    summary->thread_list[thread].name = base_copy(name);
}

static void on_region(void *context, const struct heap_region *region) {
    struct summary *summary = context;
    struct summary_regions *regions = &summary->regions;
    if (!region->is_mapped) {
        regions->live_bytes -= region->bytes;
        return;
    }
    regions->count++;
    regions->bytes += region->bytes;
    regions->live_bytes += region->bytes;
    site_of(summary, region->stack)->mapped_bytes += region->bytes;
    summary->total.mapped_bytes += region->bytes;
    if (regions->live_bytes > regions->peak_bytes) {
        regions->peak_bytes = regions->live_bytes;
        regions->peak_time = region->time;
    }
}

static void on_sample(void *context, const struct heap_sample *sample) {
    struct summary_resident *resident = &((struct summary *)context)->resident;
    resident->samples++;
    resident->last = *sample;
    if (sample->resident > resident->peak_bytes) {
        resident->peak_bytes = sample->resident;
        resident->peak_time = sample->time;
    }
    if (sample->anonymous == HEAP_UNKNOWN)
        return;
    if (!resident->peak_anonymous)
        resident->first_anonymous = sample->anonymous;
    if (sample->anonymous > resident->peak_anonymous)
        resident->peak_anonymous = sample->anonymous;
}

static void on_end(void *context, uint64_t time) {
    struct summary *summary = context;
    summary->time = time;
    marks_end(&summary->marks, time);
    for (size_t i = 0; i < summary->site_count; i++)
        note_peak(summary, &summary->sites[i]);
}

void summary_sink(struct summary *summary, struct heap_sink *sink) {
    *sink = (struct heap_sink){
        .context = summary,
        .event = on_event,
        .stack = on_stack,
        .thread = on_thread,
        .name = on_name,
        .region = on_region,
        .sample = on_sample,
        .corrected = on_corrected,
        .mark = on_mark,
        .end = on_end,
    };
}

void summary_free(struct summary *summary) {
    stacks_free(&summary->stacks);
    marks_free(&summary->marks);
    free(summary->sites);
    free(summary->latest);
    for (uint64_t i = 1; i <= summary->threads; i++)
        free(summary->thread_list[i].name);
    free(summary->thread_list);
    *summary = (struct summary){0};
}

void summary_check(const struct summary *summary) {
    struct summary_site sum = {0};
    for (size_t i = 0; i < summary->site_count; i++) {
        sum.allocated += summary->sites[i].allocated;
        sum.allocated_bytes += summary->sites[i].allocated_bytes;
        sum.temporary += summary->sites[i].temporary;
        sum.live_bytes += summary->sites[i].live_bytes;
        sum.live += summary->sites[i].live;
        sum.peak_bytes += summary->sites[i].peak_bytes;
        sum.peak += summary->sites[i].peak;
        sum.mapped_bytes += summary->sites[i].mapped_bytes;
    }
    const struct summary_site *total = &summary->total;
    if (sum.allocated != total->allocated || sum.allocated_bytes != total->allocated_bytes ||
        sum.temporary != total->temporary || sum.live_bytes != total->live_bytes ||
        sum.live != total->live || sum.peak_bytes != total->peak_bytes || sum.peak != total->peak ||
        sum.mapped_bytes != total->mapped_bytes)
        abort();
}
