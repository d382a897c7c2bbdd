#include "profile/heap/massif.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

// Mark of a block whose allocation was left out: it stays so when it is resized.
#define IGNORED 1u

// What is known of a stack.
struct site {
    uint64_t bytes; // useful ones, now
    bool used;      // it has held memory before
    bool asked;
    bool ignored;
};

struct massif {
    struct massif_options options;
    struct massif_snapshot *snapshots;
    size_t count;
    struct site *sites;
    size_t site_count;
    uint64_t useful, extra, stacks;
    uint64_t instructions;
    uint64_t changed;    // bytes ever allocated and freed, the time in unit B
    uint64_t peak;       // total of the last peak snapshot
    uint64_t interval;   // least time between snapshots
    uint64_t next;       // no ordinary snapshot before this time
    unsigned undetailed; // snapshots since the last detailed one
    uint64_t now;        // nanoseconds
    bool is_merging;     // the last event was merged with others
};

static uint64_t current_time(const struct massif *massif) {
    switch (massif->options.time_unit) {
    case MASSIF_BYTES:
        return massif->changed;
    case MASSIF_INSTRUCTIONS:
        return massif->instructions;
    default:
        return massif->now / 1000000;
    }
}

static uint64_t current_total(const struct massif *massif) {
    return massif->useful + massif->extra + massif->stacks;
}

static struct site *site_of(struct massif *massif, uint32_t stack) {
    massif->sites = base_reach(massif->sites, &massif->site_count, stack, sizeof *massif->sites);
    return &massif->sites[stack];
}

static bool is_ignored(struct massif *massif, uint32_t stack) {
    struct site *site = site_of(massif, stack);
    if (!site->asked && massif->options.ignore)
        site->ignored = massif->options.ignore(massif->options.ignore_context, stack);
    site->asked = true;
    return site->ignored;
}

// ---- removing half ----

static void discard(struct massif_snapshot *snapshot) {
    free(snapshot->shares);
    memset(snapshot, 0, sizeof *snapshot);
}

// The snapshot whose neighbours are closest to each other.
static size_t least_important(const struct massif *massif) {
    size_t best = 0;
    uint64_t best_span = UINT64_MAX;
    for (size_t i = 1; i + 1 < massif->count; i++) {
        uint64_t span = massif->snapshots[i + 1].time - massif->snapshots[i - 1].time;
        if (!massif->snapshots[i].is_peak && span < best_span) {
            best_span = span;
            best = i;
        }
    }
    return best;
}

static bool is_fixed(const struct massif *massif, size_t index) {
    return index == 0 || index + 1 == massif->count || massif->snapshots[index].is_peak;
}

static void remove_half(struct massif *massif) {
    for (size_t i = 0; i < massif->options.max_snapshots / 2; i++) {
        size_t index = least_important(massif);
        discard(&massif->snapshots[index]);
        massif->count--;
        memmove(&massif->snapshots[index], &massif->snapshots[index + 1],
                (massif->count - index) * sizeof *massif->snapshots);
    }
    uint64_t least = UINT64_MAX;
    for (size_t i = 1; i < massif->count; i++) {
        uint64_t span = massif->snapshots[i].time - massif->snapshots[i - 1].time;
        if (!(is_fixed(massif, i) && is_fixed(massif, i - 1)) && span < least)
            least = span;
    }
    massif->interval = least;
}

// ---- taking ----

static void take_shares(struct massif *massif, struct massif_snapshot *snapshot) {
    size_t count = 0;
    for (size_t i = 0; i < massif->site_count; i++)
        count += massif->sites[i].used;
    snapshot->shares = base_allocate((count + 1) * sizeof *snapshot->shares);
    for (size_t i = 0; i < massif->site_count; i++)
        if (massif->sites[i].used)
            snapshot->shares[snapshot->share_count++] =
                (struct massif_share){(uint32_t)i, massif->sites[i].bytes};
}

static void take(struct massif *massif, bool is_peak, bool is_detailed) {
    struct massif_snapshot *snapshot = &massif->snapshots[massif->count];
    *snapshot = (struct massif_snapshot){
        .time = current_time(massif),
        .useful = massif->useful,
        .extra = massif->extra,
        .stacks = massif->stacks,
        .is_peak = is_peak,
        .is_detailed = is_detailed,
    };
    if (is_detailed)
        take_shares(massif, snapshot);
    massif->undetailed = is_detailed ? 0 : massif->undetailed + 1;
    if (is_peak) {
        massif->peak = current_total(massif);
        for (size_t i = 0; i < massif->count; i++)
            massif->snapshots[i].is_peak = false;
    }
    massif->count++;
    uint64_t time = snapshot->time;
    if (massif->count == massif->options.max_snapshots)
        remove_half(massif);
    massif->next = time + massif->interval;
}

static void try_normal(struct massif *massif) {
    if (!massif->is_merging && current_time(massif) >= massif->next)
        take(massif, false, massif->undetailed == massif->options.detailed_freq - 1);
}

static double least_peak(const struct massif *massif) {
    return (double)massif->peak + (double)massif->peak * massif->options.peak_inaccuracy / 100;
}

static void try_peak(struct massif *massif) {
    if (!massif->is_merging && (double)current_total(massif) > least_peak(massif))
        take(massif, true, true);
}

// ---- events ----

// Applies a change of useful and extra bytes, given as what is added and what is taken away.
static void change(struct massif *massif, uint64_t useful_more, uint64_t useful_less,
                   uint64_t extra_more, uint64_t extra_less) {
    massif->useful += useful_more - useful_less;
    massif->extra += extra_more - extra_less;
    int64_t sum = (int64_t)(useful_more - useful_less + extra_more - extra_less);
    massif->changed += (uint64_t)(sum < 0 ? -sum : sum);
}

static uint64_t slop_of(const struct heap_block *block) {
    return block->capacity - block->size;
}

static void hold(struct massif *massif, const struct heap_block *block) {
    struct site *site = site_of(massif, block->stack);
    site->bytes += block->size;
    site->used = true;
}

static void on_allocated(struct massif *massif, struct heap_block *block) {
    if (is_ignored(massif, block->stack)) {
        block->marks |= IGNORED;
        return;
    }
    change(massif, block->size, 0, massif->options.heap_admin + slop_of(block), 0);
    hold(massif, block);
    try_normal(massif);
}

static void on_freed(struct massif *massif, const struct heap_block *block) {
    if (block->marks & IGNORED)
        return;
    try_peak(massif);
    change(massif, 0, block->size, 0, massif->options.heap_admin + slop_of(block));
    site_of(massif, block->stack)->bytes -= block->size;
    try_normal(massif);
}

static void on_resized(struct massif *massif, const struct heap_block *before,
                       struct heap_block *block) {
    if (before->marks & IGNORED)
        return;
    if (block->size < before->size)
        try_peak(massif);
    site_of(massif, before->stack)->bytes -= before->size;
    if (is_ignored(massif, block->stack)) {
        block->marks |= IGNORED;
        change(massif, 0, before->size, 0, massif->options.heap_admin + slop_of(before));
    } else {
        change(massif, block->size, before->size, slop_of(block), slop_of(before));
        hold(massif, block);
    }
    try_normal(massif);
}

static void on_event(void *context, const struct heap_event *event) {
    struct massif *massif = context;
    massif->now = event->time;
    if (massif->options.no_heap || massif->options.is_pages)
        return;
    // Of merged events only what is there in the end counts.
    bool was_merging = massif->is_merging;
    massif->is_merging = event->is_merged;
    if (was_merging && !event->is_merged) {
        try_peak(massif);
        try_normal(massif);
    }
    switch (event->kind) {
    case HEAP_ALLOCATED:
        on_allocated(massif, event->block);
        break;
    case HEAP_FREED:
        on_freed(massif, &event->before);
        break;
    case HEAP_RESIZED:
        on_resized(massif, &event->before, event->block);
        break;
    case HEAP_SKIPPED:
        break;
    }
}

// Regions are pages; what goes may be a part of one.
static void on_region(void *context, const struct heap_region *region) {
    struct massif *massif = context;
    massif->now = region->time;
    if (!massif->options.is_pages || is_ignored(massif, region->stack))
        return;
    struct site *site = site_of(massif, region->stack);
    if (region->is_mapped) {
        change(massif, region->bytes, 0, 0, 0);
        site->bytes += region->bytes;
        site->used = true;
    } else {
        try_peak(massif);
        change(massif, 0, region->bytes, 0, 0);
        site->bytes -= region->bytes;
    }
    try_normal(massif);
}

static void on_moment(void *context, const struct heap_moment *moment) {
    struct massif *massif = context;
    massif->now = moment->time;
    if (moment->instructions > massif->instructions)
        massif->instructions = moment->instructions;
    massif->changed += moment->stacks > massif->stacks ? moment->stacks - massif->stacks
                                                       : massif->stacks - moment->stacks;
    massif->stacks = moment->stacks;
    if (!moment->falls)
        return;
    try_peak(massif);
    try_normal(massif);
}

static void on_mark(void *context, const struct heap_mark *mark) {
    struct massif *massif = context;
    massif->now = mark->time;
    if (mark->kind == HEAP_MARK_SNAPSHOT)
        take(massif, false, true);
}

struct massif_gate massif_gate(const struct massif *massif) {
    return (struct massif_gate){.total = (uint64_t)least_peak(massif), .time = massif->next};
}

static void on_end(void *context, uint64_t time) {
    struct massif *massif = context;
    massif->now = time;
    try_peak(massif);
}

struct massif *massif_new(const struct massif_options *options) {
    struct massif *massif = base_allocate(sizeof *massif);
    *massif = (struct massif){.options = *options};
    massif->snapshots = base_allocate(options->max_snapshots * sizeof *massif->snapshots);
    try_normal(massif);
    return massif;
}

void massif_free(struct massif *massif) {
    for (size_t i = 0; i < massif->count; i++)
        free(massif->snapshots[i].shares);
    free(massif->snapshots);
    free(massif->sites);
    free(massif);
}

void massif_sink(struct massif *massif, struct heap_sink *sink) {
    *sink = (struct heap_sink){.context = massif,
                               .event = on_event,
                               .region = on_region,
                               .moment = on_moment,
                               .mark = on_mark,
                               .end = on_end};
}

void massif_snapshot_now(struct massif *massif) {
    take(massif, false, true);
}

uint64_t massif_bytes(const struct massif *massif) {
    return massif->useful;
}

const struct massif_snapshot *massif_snapshots(const struct massif *massif, size_t *count) {
    *count = massif->count;
    return massif->snapshots;
}

void massif_check(const struct massif *massif) {
    uint64_t bytes = 0;
    size_t peaks = 0;
    for (size_t i = 0; i < massif->site_count; i++)
        bytes += massif->sites[i].bytes;
    for (size_t i = 0; i < massif->count; i++) {
        peaks += massif->snapshots[i].is_peak;
        if (i && massif->snapshots[i].time < massif->snapshots[i - 1].time)
            abort();
    }
    if (bytes != massif->useful || peaks > 1 || massif->count >= massif->options.max_snapshots)
        abort();
}
