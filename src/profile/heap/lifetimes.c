#include "profile/heap/lifetimes.h"

#include <stdlib.h>

#include "base/text.h"

// What a stack held at the peak is noted when it changes for the first time afterwards.
static void note_peak(const struct lifetimes *lifetimes, struct lifetimes_site *site) {
    if (site->peak_seen == lifetimes->peak_number)
        return;
    site->peak_seen = lifetimes->peak_number;
    site->peak = site->live;
    site->peak_bytes = site->live_bytes;
}

static struct lifetimes_site *site_of(struct lifetimes *lifetimes, uint32_t stack) {
    lifetimes->sites =
        base_reach(lifetimes->sites, &lifetimes->site_count, stack, sizeof *lifetimes->sites);
    note_peak(lifetimes, &lifetimes->sites[stack]);
    return &lifetimes->sites[stack];
}

static struct lifetimes_site *site_of_block(struct lifetimes *lifetimes,
                                            const struct heap_block *block) {
    return site_of(lifetimes, lifetimes->is_dhat ? block->marks : block->stack);
}

// dhat takes a block without bytes for one of a single byte.
static uint64_t size_of(const struct lifetimes *lifetimes, const struct heap_block *block) {
    return lifetimes->is_dhat && !block->size ? 1 : block->size;
}

static void gain(struct lifetimes_site *site, uint64_t blocks, uint64_t bytes) {
    site->live += blocks;
    site->live_bytes += bytes;
    if (site->live_bytes > site->most_bytes) {
        site->most_bytes = site->live_bytes;
        site->most = site->live;
    }
}

static void lose(struct lifetimes_site *site, uint64_t blocks, uint64_t bytes) {
    site->live -= blocks;
    site->live_bytes -= bytes;
}

static void count(struct lifetimes *lifetimes, struct lifetimes_site *site, uint64_t blocks,
                  uint64_t bytes) {
    site->blocks += blocks;
    site->bytes += bytes;
    lifetimes->total.blocks += blocks;
    lifetimes->total.bytes += bytes;
}

static void end_life(struct lifetimes *lifetimes, struct lifetimes_site *site,
                     const struct heap_block *block, uint64_t time) {
    uint64_t life = time > block->time ? time - block->time : 0;
    struct lifetimes_site *sums[] = {site, &lifetimes->total};
    for (int i = 0; i < 2; i++) {
        sums[i]->ended++;
        sums[i]->life += life;
        sums[i]->longest = life > sums[i]->longest ? life : sums[i]->longest;
        sums[i]->brief += life < lifetimes->brief;
    }
}

static void on_resized(struct lifetimes *lifetimes, const struct heap_event *event) {
    const struct heap_block *before = &event->before, *block = event->block;
    uint64_t old_size = size_of(lifetimes, before), size = size_of(lifetimes, block);
    lose(site_of_block(lifetimes, before), 1, old_size);
    struct lifetimes_site *site = site_of_block(lifetimes, block);
    gain(site, 1, size);
    lose(&lifetimes->total, 1, old_size);
    gain(&lifetimes->total, 1, size);
    if (lifetimes->is_dhat)
        count(lifetimes, site, 1, size);
    else if (size > old_size)
        count(lifetimes, site, 0, size - old_size);
}

static void on_event(void *context, const struct heap_event *event) {
    struct lifetimes *lifetimes = context;
    struct lifetimes_site *site;
    uint64_t size;
    switch (event->kind) {
    case HEAP_ALLOCATED:
        if (lifetimes->is_dhat)
            event->block->marks = event->block->stack;
        site = site_of_block(lifetimes, event->block);
        size = size_of(lifetimes, event->block);
        count(lifetimes, site, 1, size);
        gain(site, 1, size);
        gain(&lifetimes->total, 1, size);
        break;
    case HEAP_FREED:
        site = site_of_block(lifetimes, &event->before);
        size = size_of(lifetimes, &event->before);
        lose(site, 1, size);
        lose(&lifetimes->total, 1, size);
        end_life(lifetimes, site, &event->before, event->time);
        break;
    case HEAP_RESIZED:
        on_resized(lifetimes, event);
        break;
    case HEAP_SKIPPED:
        break;
    }
    // Of moments with as much, dhat takes the last one.
    bool is_more = lifetimes->is_dhat ? lifetimes->total.live_bytes >= lifetimes->total.peak_bytes
                                      : lifetimes->total.live_bytes > lifetimes->total.peak_bytes;
    if (!event->is_merged && is_more) {
        lifetimes->total.peak_bytes = lifetimes->total.live_bytes;
        lifetimes->total.peak = lifetimes->total.live;
        lifetimes->peak_time = event->time;
        lifetimes->peak_number++;
    }
}

void lifetimes_left(struct lifetimes *lifetimes, const struct heap_block *block, uint64_t time) {
    end_life(lifetimes, site_of_block(lifetimes, block), block, time);
}

static void on_left(void *context, const struct heap_block *block, uint64_t time) {
    lifetimes_left(context, block, time);
}

static void on_end(void *context, uint64_t time) {
    struct lifetimes *lifetimes = context;
    lifetimes->time = time;
    for (size_t i = 0; i < lifetimes->site_count; i++)
        note_peak(lifetimes, &lifetimes->sites[i]);
}

void lifetimes_sink(struct lifetimes *lifetimes, struct heap_sink *sink) {
    *sink =
        (struct heap_sink){.context = lifetimes, .event = on_event, .left = on_left, .end = on_end};
}

void lifetimes_free(struct lifetimes *lifetimes) {
    free(lifetimes->sites);
    *lifetimes = (struct lifetimes){0};
}
