#include "fleet/interval.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vector.h"
#include "report/heap/rows.h"

// A question about what was alive at a time looks back this long, and no longer.
#define FULL_SECONDS 3600

struct numbers {
    uint64_t bytes, blocks, temporary, live_bytes, live;
};

// Stacks that differ only in addresses are one.
struct known_stack {
    struct numbers now, before; // sums since the beginning; `before` as of the last interval
    bool is_described;
};

struct interval_maker {
    const struct identity *identity;
    uint64_t process;
    uint32_t number;
    unsigned edition;
    uint32_t *by_id; // the entry of a stack of the recording, plus 1; 0: not looked at
    size_t by_id_count;
    struct map_integers keys;
    struct known_stack *stacks; // by entry
    size_t stack_count;
    uint64_t dropped;
    time_t last_full;
    struct timespec last;
    struct numbers sums;
    uint64_t freed, resized;
};

static uint64_t make_key(int pid, const struct identity *identity, const struct timespec *since) {
    struct text text = {0};
    text_format(&text, "%s %d %lld.%09ld", identity->host, pid, (long long)since->tv_sec,
                since->tv_nsec);
    uint64_t key = hash_text(HASH_TEXT_START, text.bytes);
    text_free(&text);
    return key & INT64_MAX;
}

struct interval_maker *interval_maker_new(int pid, const struct identity *identity,
                                          struct timespec since) {
    struct interval_maker *maker = base_allocate(sizeof *maker);
    *maker = (struct interval_maker){.identity = identity, .last = since};
    maker->process = make_key(pid, identity, &since);
    return maker;
}

void interval_maker_free(struct interval_maker *maker) {
    if (!maker)
        return;
    free(maker->by_id);
    map_integers_free(&maker->keys);
    free(maker->stacks);
    free(maker);
}

// ---- stacks ------------------------------------------------------------------------------------

struct description {
    struct text *rows; // of frames; NULL: only the hash is wanted
    uint64_t key;
    uint64_t hash;
    uint64_t depth;
};

static void add_to_hash(struct description *description, const char *text) {
    // With the NUL behind it, so that what is said of a frame has its ends.
    description->hash = hash_bytes(description->hash, text, strlen(text) + 1);
}

static void hash_frame(void *context, const struct heap_place *place,
                       const struct symbol_frame *frame) {
    struct description *description = context;
    char line[32], *label = symbol_frame_label(frame);
    snprintf(line, sizeof line, "%u %d", frame->line, frame->inlined);
    add_to_hash(description, label);
    free(label);
    add_to_hash(description, frame->file ? frame->file : "");
    add_to_hash(description, frame->object ? frame->object : "");
    add_to_hash(description, line);
}

static void describe_frame(void *context, const struct heap_place *place,
                           const struct symbol_frame *frame) {
    struct description *description = context;
    char *label = symbol_frame_label(frame);
    batch_number(description->rows, description->key);
    batch_number(description->rows, description->depth++);
    batch_text(description->rows, label);
    batch_text(description->rows, frame->file ? frame->file : "");
    batch_number(description->rows, frame->line);
    batch_text(description->rows, frame->object ? frame->object : "");
    batch_number(description->rows, frame->inlined);
    batch_end_row(description->rows);
    free(label);
}

static struct known_stack *find_stack(struct interval_maker *maker, const struct heap_file *file,
                                      uint32_t id) {
    bool is_new = false;
    maker->by_id = base_reach(maker->by_id, &maker->by_id_count, id, sizeof *maker->by_id);
    if (!maker->by_id[id]) {
        struct description description = {.hash = HASH_TEXT_START};
        rows_frames(file, id, hash_frame, &description);
        uint64_t key = description.hash & INT64_MAX;
        maker->by_id[id] = map_integers_add(&maker->keys, key, &is_new) + 1;
    }
    if (is_new)
        *vector_push(maker->stacks, maker->stack_count) = (struct known_stack){0};
    return &maker->stacks[maker->by_id[id] - 1];
}

static void describe(struct interval_maker *maker, const struct heap_file *file, uint32_t id,
                     struct batch *batch) {
    struct description description = {.rows = &batch->rows[TABLE_FRAMES],
                                      .key = maker->keys.keys[maker->by_id[id] - 1]};
    char *folded = rows_folded(file, id);
    batch_number(&batch->rows[TABLE_NAMES], description.key);
    batch_text(&batch->rows[TABLE_NAMES], folded);
    batch_end_row(&batch->rows[TABLE_NAMES]);
    rows_frames(file, id, describe_frame, &description);
    free(folded);
}

static void add_site(struct numbers *numbers, const struct summary_site *site) {
    numbers->bytes += site->allocated_bytes;
    numbers->blocks += site->allocated;
    numbers->temporary += site->temporary;
    numbers->live_bytes += site->live_bytes;
    numbers->live += site->live;
}

static void put_sums(struct text *rows, const struct numbers *now, const struct numbers *before) {
    batch_number(rows, now->bytes - before->bytes);
    batch_number(rows, now->blocks - before->blocks);
    batch_number(rows, now->temporary - before->temporary);
    batch_number(rows, now->live_bytes);
    batch_number(rows, now->live);
}

static void put_key(struct text *rows, const struct batch *batch,
                    const struct interval_maker *maker) {
    batch_number(rows, batch->process);
    batch_number(rows, batch->number);
    batch_time(rows, batch->time);
    batch_text(rows, maker->identity->service);
}

static void put_counts(struct interval_maker *maker, const struct heap_file *file, bool is_full,
                       struct batch *batch) {
    const struct summary *summary = &file->summary;
    struct text *rows = &batch->rows[TABLE_COUNTS];
    for (size_t i = 0; i < maker->stack_count; i++)
        maker->stacks[i].now = (struct numbers){0};
    for (size_t i = 0; i < summary->site_count; i++)
        if (rows_has(&summary->sites[i]))
            add_site(&find_stack(maker, file, (uint32_t)i)->now, &summary->sites[i]);
    for (size_t i = 0; i < summary->site_count; i++) {
        struct known_stack *stack =
            rows_has(&summary->sites[i]) ? &maker->stacks[maker->by_id[i] - 1] : NULL;
        if (stack && !stack->is_described) {
            describe(maker, file, (uint32_t)i, batch);
            stack->is_described = true;
        }
    }
    for (size_t i = 0; i < maker->stack_count; i++) {
        struct known_stack *stack = &maker->stacks[i];
        bool is_changed = memcmp(&stack->now, &stack->before, sizeof stack->now) != 0;
        if (!is_changed && !(is_full && stack->now.live))
            continue;
        put_key(rows, batch, maker);
        batch_number(rows, maker->keys.keys[i]);
        put_sums(rows, &stack->now, &stack->before);
        batch_end_row(rows);
        stack->before = stack->now;
    }
}

// ---- the interval ------------------------------------------------------------------------------

static void put_process(const struct interval_maker *maker, const struct follower *follower,
                        struct batch *batch) {
    const struct recording_process *process = &follower->file.info.process;
    struct text *rows = &batch->rows[TABLE_PROCESSES];
    batch_number(rows, maker->process);
    batch_time(rows, (time_t)process->started);
    batch_text(rows, maker->identity->host);
    batch_text(rows, maker->identity->service);
    batch_text(rows, maker->identity->version);
    batch_text(rows, maker->identity->build_id);
    batch_text(rows, process->command ? process->command : "");
    batch_number(rows, (uint64_t)process->pid);
    batch_end_row(rows);
}

static void put_interval(struct interval_maker *maker, const struct summary *summary, bool is_last,
                         double seconds, struct batch *batch) {
    struct numbers now = {0};
    struct text *rows = &batch->rows[TABLE_INTERVALS];
    const struct heap_sample *last = &summary->resident.last;
    add_site(&now, &summary->total);
    put_key(rows, batch, maker);
    batch_real(rows, seconds);
    batch_number(rows, is_last);
    batch_number(rows, maker->dropped);
    put_sums(rows, &now, &maker->sums);
    batch_number(rows, summary->freed - maker->freed);
    batch_number(rows, summary->resized - maker->resized);
    batch_number(rows, summary->total.peak_bytes);
    batch_number(rows, last->resident);
    batch_number(rows, last->anonymous == HEAP_UNKNOWN ? 0 : last->anonymous);
    batch_end_row(rows);
    maker->sums = now;
    maker->freed = summary->freed;
    maker->resized = summary->resized;
}

// The numbers of stacks are those of the file.
static void take_edition(struct interval_maker *maker, const struct follower *follower) {
    if (maker->edition == follower->edition)
        return;
    maker->edition = follower->edition;
    free(maker->by_id);
    maker->by_id = NULL;
    maker->by_id_count = 0;
}

bool interval_make(struct interval_maker *maker, const struct follower *follower, uint64_t dropped,
                   bool is_last, struct timespec now, struct batch *batch) {
    // A file that is just being read anew has fewer events than have been reported.
    if (!follower->is_open || !follower->file.info.process.command ||
        follower->file.summary.total.allocated < maker->sums.blocks)
        return false;
    take_edition(maker, follower);
    bool has_lost = dropped != maker->dropped;
    bool is_full = has_lost || now.tv_sec - maker->last_full >= FULL_SECONDS;
    for (size_t i = 0; has_lost && i < maker->stack_count; i++)
        maker->stacks[i].is_described = false;
    maker->dropped = dropped;
    if (is_full)
        maker->last_full = now.tv_sec;
    double seconds = (double)(now.tv_sec - maker->last.tv_sec) +
                     (double)(now.tv_nsec - maker->last.tv_nsec) / 1e9;
    maker->last = now;
    *batch =
        (struct batch){.process = maker->process, .number = ++maker->number, .time = now.tv_sec};
    struct text service = {0};
    batch_text(&service, maker->identity->service);
    service.bytes[service.size - 1] = 0;
    batch->service = text_take(&service);
    if (maker->number == 1 || has_lost)
        put_process(maker, follower, batch);
    put_counts(maker, &follower->file, is_full, batch);
    put_interval(maker, &follower->file.summary, is_last, seconds, batch);
    return true;
}
