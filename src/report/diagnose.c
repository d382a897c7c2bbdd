#include "report/diagnose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/diagnose_parts.h"
#include "report/heap_rows.h"
#include "report/heap_text.h"

// ---- looking -----------------------------------------------------------------------------------

static void note_moments(struct examination *it, uint64_t time) {
    for (; it->moment < MOMENTS; it->moment++) {
        if (time < it->end / MOMENTS * (it->moment + 1))
            return;
        it->totals[it->moment] = it->live_bytes;
        it->event_counts[it->moment] = it->events;
        for (size_t i = 0; i < it->site_count; i++)
            if (it->sites[i].series)
                it->sites[i].series[it->moment] = it->sites[i].live_bytes;
    }
}

static struct thread_use *thread_at(struct examination *it, uint32_t thread) {
    if (thread >= it->thread_count) {
        size_t count = (size_t)thread + 1;
        it->threads = base_reallocate(it->threads, count * sizeof *it->threads);
        memset(it->threads + it->thread_count, 0, (count - it->thread_count) * sizeof *it->threads);
        it->thread_count = count;
    }
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
    note_moments(it, event->time);
    if (event->kind == HEAP_SKIPPED)
        return;
    it->events++;
    it->frees += event->kind == HEAP_FREED;
    thread_at(it, event->thread)->last = event->time;
    if (event->kind == HEAP_FREED || event->kind == HEAP_RESIZED)
        change(it, &event->before, false);
    if (event->kind == HEAP_ALLOCATED || event->kind == HEAP_RESIZED)
        change(it, event->block, true);
    if (event->kind == HEAP_RESIZED)
        note_resize(it, event);
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
    note_moments(context, UINT64_MAX);
}

static char *look(int fd, const struct heap_file *file, struct examination *it) {
    *it = (struct examination){.file = file,
                               .end = file->summary.time,
                               .peak_time = file->summary.peak_time,
                               .site_count = file->summary.site_count};
    it->sites = calloc(it->site_count + 1, sizeof *it->sites);
    for (size_t i = 0; it->sites && i < it->site_count; i++)
        if (file->summary.sites[i].peak_bytes >= GROWTH_BYTES)
            it->sites[i].series = calloc(MOMENTS, sizeof *it->sites[i].series);
    if (!it->sites)
        abort();
    struct heap_sink sink = {
        .context = it, .event = on_event, .left = on_left, .sample = on_sample, .end = on_end};
    struct heap_file again;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return base_copy("it cannot be read twice");
    char *problem = heap_file_read(fd, &again, &sink, 1);
    heap_file_free(&again);
    return problem;
}

static void free_examination(struct examination *it) {
    for (size_t i = 0; i < it->site_count; i++)
        free(it->sites[i].series);
    free(it->sites);
    free(it->threads);
}

// ---- results -----------------------------------------------------------------------------------

void diagnoses_add(struct diagnoses *diagnoses, struct diagnosis diagnosis) {
    diagnoses->items =
        base_reallocate(diagnoses->items, (diagnoses->count + 1) * sizeof *diagnoses->items);
    diagnoses->items[diagnoses->count++] = diagnosis;
}

static int by_weight(const void *left, const void *right) {
    const struct diagnosis *a = left, *b = right;
    if (a->certainty != b->certainty)
        return a->certainty < b->certainty ? 1 : -1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

char *diagnose(int fd, const struct heap_file *file, struct diagnoses *diagnoses) {
    struct examination it;
    *diagnoses = (struct diagnoses){0};
    char *problem = look(fd, file, &it);
    if (!problem) {
        diagnose_sites(&it, diagnoses);
        diagnose_growth(&it, diagnoses);
        diagnose_whole(&it, diagnoses);
        if (diagnoses->count)
            qsort(diagnoses->items, diagnoses->count, sizeof *diagnoses->items, by_weight);
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

void diagnoses_free(struct diagnoses *diagnoses) {
    for (size_t i = 0; i < diagnoses->count; i++)
        free(diagnoses->items[i].evidence);
    free(diagnoses->items);
}

// ---- words -------------------------------------------------------------------------------------

static const struct {
    const char *word, *title, *advice;
} words[DIAGNOSIS_KINDS] = {
    [DIAGNOSIS_GROWS] = {"growing-memory", "Memory that only grows",
                         "Something is put in and never taken out. Bound it (by number, size or "
                         "age), or remove entries when what they stand for is gone. "
                         "--tool=memcheck --leak-check=full --show-leak-kinds=reachable says who "
                         "holds it."},
    [DIAGNOSIS_HANDLERS] = {"handlers-kept", "Handlers that are registered and never removed",
                            "For each registration there must be a removal: when the connection, "
                            "window or object that it serves is gone."},
    [DIAGNOSIS_CAPACITY] = {"capacity-kept", "A buffer that keeps its capacity",
                            "If the large size was needed for one rare input, shrink the buffer "
                            "afterwards (realloc, shrink_to_fit), or free it and begin anew."},
    [DIAGNOSIS_THREADS] = {"thread-memory", "Memory of threads that are gone or idle",
                           "Free what a thread keeps for itself when it ends (a destructor of its "
                           "thread-local storage), and let threads of a pool give back what they "
                           "do not need while they wait."},
    [DIAGNOSIS_TEMPORARY] = {"temporary-allocations", "Short-lived allocations in a hot path",
                             "Each of these blocks is freed before the thread allocates again. Use "
                             "a buffer on the stack, keep one for reuse, or allocate from an "
                             "arena."},
    [DIAGNOSIS_FRAGMENTATION] =
        {"fragmentation", "Memory that cannot be given back",
         "A few blocks that stay hold whole pages of freed ones. Allocate "
         "what lives long apart from what lives briefly (a pool, an arena); "
         "malloc_trim or another allocator may help."},
    [DIAGNOSIS_SPIKE] = {"spike", "A short peak made by few places",
                         "The process needs this much memory for a moment only. Work in smaller "
                         "pieces, or as a stream."},
    [DIAGNOSIS_TINY] = {"tiny-blocks", "Very many small blocks",
                        "Each block costs 16 bytes and more beside its content. Allocate many at "
                        "once: an array, a pool of objects (quern/heap.h has one)."},
};

const char *diagnosis_word(enum diagnosis_kind kind) {
    return words[kind].word;
}

// Breaks lines at spaces.
static void print_wrapped(FILE *out, const char *text) {
    enum { WIDTH = 92 };
    size_t column = 0;
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, " ");
        if (column && column + 1 + length > WIDTH) {
            fputs("\n  ", out);
            column = 0;
        }
        column += (size_t)fprintf(out, "%s%.*s", column ? " " : "", (int)length, at);
        at += length + strspn(at + length, " ");
    }
    fputc('\n', out);
}

const char *diagnosis_title(enum diagnosis_kind kind) {
    return words[kind].title;
}

const char *diagnosis_advice(enum diagnosis_kind kind) {
    return words[kind].advice;
}

const char *diagnosis_certainty(enum certainty certainty) {
    static const char *const certainties[] = {"possible", "likely", "certain"};
    return certainties[certainty];
}

void diagnoses_print(FILE *out, const struct diagnoses *diagnoses, const struct heap_file *file,
                     size_t callers) {
    if (!diagnoses->count)
        fputs("Nothing stands out.\n", out);
    for (size_t i = 0; i < diagnoses->count; i++) {
        const struct diagnosis *diagnosis = &diagnoses->items[i];
        fprintf(out, "%s%zu. %s (%s)\n  ", i ? "\n" : "", i + 1, words[diagnosis->kind].title,
                diagnosis_certainty(diagnosis->certainty));
        print_wrapped(out, diagnosis->evidence);
        if (diagnosis->stack)
            rows_stack(out, file, diagnosis->stack, callers);
        fputs("  ", out);
        print_wrapped(out, words[diagnosis->kind].advice);
    }
}
