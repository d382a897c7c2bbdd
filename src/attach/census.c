#include "attach/census.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attach/leak_memory.h"
#include "attach/objects.h"
#include "attach/refusal.h"
#include "attach/residency.h"
#include "attach/walk.h"
#include "base/text.h"
#include "base/vector.h"

#define LOOKS_MOST  2000         // stops that found a thread within malloc
#define COPIES_MOST 12           // copies that were not consistent
#define PAUSE       2000000      // nanoseconds between two stops
#define STACK_MOST  (8ull << 20) // how far from its pointer a stack may reach

// ---- what the parts of a walk share ------------------------------------------------------------

bool walk_fail(struct heap_walk *walk, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(walk->problem, sizeof walk->problem, format, arguments);
    va_end(arguments);
    return false;
}

void walk_add_block(struct heap_walk *walk, uint64_t start, uint64_t size) {
    *vector_push(walk->census->blocks, walk->census->block_count) =
        (struct leak_graph_block){.start = start, .size = size};
}

void walk_add_heap(struct heap_walk *walk, uint64_t start, uint64_t end) {
    *vector_push(walk->heaps, walk->heap_count) = (struct heap_range){start, end};
}

// ---- one walk ----------------------------------------------------------------------------------

static void forget_walk(struct census_taken *taken) {
    struct census *census = &taken->census;
    census->arena_count = census->block_count = census->class_count = census->caches = 0;
    census->mapped = (struct census_sum){0};
    census->mapped_size = 0;
    taken->heap_count = 0;
}

static bool walk_all(struct census_taken *taken, const struct allocator *allocator,
                     char problem[160]) {
    struct heap_walk walk = {.allocator = allocator,
                             .snapshot = &taken->snapshot,
                             .census = &taken->census,
                             .heaps = taken->heaps};
    forget_walk(taken);
    bool is_fine = walk_caches(&walk) && walk_arenas(&walk) && walk_mapped(&walk);
    taken->heaps = walk.heaps;
    taken->heap_count = walk.heap_count;
    free(walk.known);
    memcpy(problem, walk.problem, sizeof walk.problem);
    return is_fine;
}

// ---- sizes -------------------------------------------------------------------------------------

static int by_size(const void *a, const void *b) {
    const uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

static void count_classes(struct census *census) {
    uint64_t *sizes = base_allocate((census->block_count + 1) * sizeof *sizes);
    for (size_t i = 0; i < census->block_count; i++)
        sizes[i] = census->blocks[i].size;
    if (census->block_count)
        qsort(sizes, census->block_count, sizeof *sizes, by_size);
    for (size_t i = 0; i < census->block_count; i++) {
        if (i == 0 || sizes[i] != sizes[i - 1])
            *vector_push(census->classes, census->class_count) = (struct census_class){sizes[i], 0};
        census->classes[census->class_count - 1].blocks++;
    }
    free(sizes);
}

// ---- the whole ---------------------------------------------------------------------------------

static void wait_a_little(unsigned attempt) {
    // Not a multiple of what the process may do at regular times.
    struct timespec pause = {.tv_nsec = PAUSE + (long)(attempt % 7) * 330000};
    nanosleep(&pause, NULL);
}

static char *say_failed(int pid) {
    int error = errno;
    char *refusal = refusal_explain(pid, error);
    if (refusal)
        return refusal;
    struct text problem = {0};
    text_format(&problem, "it cannot be stopped or read (%s)", strerror(error));
    return text_take(&problem);
}

// Stops the process until a copy is consistent. A thread may be within malloc at any moment.
static char *copy_consistent(struct census_taken *taken, struct allocator *allocator) {
    char reason[160] = "";
    struct text problem = {0};
    struct census *census = &taken->census;
    for (unsigned looks = 0, copies = 0; looks < LOOKS_MOST && copies < COPIES_MOST;) {
        enum snapshot_outcome outcome =
            snapshot_take(&taken->snapshot, allocator_is_quiet, allocator);
        if (outcome == SNAPSHOT_FAILED)
            return say_failed(allocator->pid);
        census->stops++;
        if (taken->snapshot.pause > census->pause)
            census->pause = taken->snapshot.pause;
        looks += outcome == SNAPSHOT_NOT_NOW;
        copies += outcome == SNAPSHOT_TAKEN;
        if (outcome == SNAPSHOT_TAKEN && walk_all(taken, allocator, reason))
            return NULL;
        wait_a_little(looks + copies);
    }
    text_format(&problem, "its heap is not consistent: %s",
                reason[0] ? reason : "a thread is within malloc whenever the process is stopped");
    return text_take(&problem);
}

static char *read_name(int pid) {
    char path[64], name[64] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    if (file && fgets(name, sizeof name, file))
        name[strcspn(name, "\n")] = 0;
    if (file)
        fclose(file);
    return base_copy(name);
}

char *census_take(struct census_taken *taken, int pid) {
    struct allocator allocator;
    *taken = (struct census_taken){.census = {.pid = pid}};
    struct census *census = &taken->census;
    char *problem = refusal_check(pid);
    if (!problem)
        problem = allocator_find(&allocator, pid);
    if (problem)
        return problem;
    census->program = read_name(pid);
    census->allocator = allocator_text(&allocator);
    problem = snapshot_prepare(&taken->snapshot, pid);
    if (!problem)
        problem = copy_consistent(taken, &allocator);
    if (problem)
        return problem;
    census->threads = taken->snapshot.threads.count;
    census->is_partial = taken->snapshot.is_partial;
    count_classes(census);
    residency_count(census, &taken->snapshot, taken->heaps, taken->heap_count);
    return NULL;
}

static void each_heap(const void *context, leak_piece *piece, void *piece_context) {
    const struct census_taken *taken = context;
    for (size_t i = 0; i < taken->heap_count; i++)
        piece(piece_context, taken->heaps[i].start, taken->heaps[i].end, true);
}

// A thread's table of modules is held by a pointer behind its first 16 bytes, on purpose.
static void hold_vectors(const struct snapshot *snapshot, struct leak_graph *graph) {
    for (size_t i = 0; i < snapshot->threads.count; i++) {
        uint64_t at = snapshot->threads.threads[i].thread_pointer + 8, vector;
        if (!snapshot_word(snapshot, at, &vector))
            continue;
        vector -= 16;
        leak_graph_root(graph, at, &vector, 1);
    }
}

struct leak_graph *census_leaks(struct census_taken *taken, unsigned heuristics) {
    struct leak_memory memory;
    struct census *census = &taken->census;
    struct leak_heap heap = {taken, true, each_heap, &taken->snapshot};
    struct leak_graph *graph =
        leak_graph_new(census->blocks, census->block_count, heuristics,
                       &(struct leak_graph_memory){&memory, leak_memory_word, leak_memory_is_code});
    leak_graph_ignore_headers(graph);
    census->blocks = NULL;
    census->block_count = 0;
    size_t count;
    const struct leak_graph_block *blocks = leak_graph_blocks(graph, &count);
    bool is_open =
        leak_memory_open(&memory, census->pid, &taken->snapshot.threads, &heap, blocks, count);
    if (is_open) {
        hold_vectors(&taken->snapshot, graph);
        leak_memory_scan(&memory, &taken->snapshot.threads, graph);
    }
    leak_memory_close(&memory);
    if (is_open) {
        leak_graph_classify(graph);
        return graph;
    }
    leak_graph_free(graph);
    return NULL;
}

char *census_place(const struct census_taken *taken, uint64_t root) {
    const struct snapshot *snapshot = &taken->snapshot;
    const struct maps_mapping *mapping = snapshot_mapping(snapshot, root);
    struct text text = {0};
    for (size_t i = 0; i < snapshot->threads.count; i++) {
        const struct freeze_thread *thread = &snapshot->threads.threads[i];
        const struct maps_mapping *stack = snapshot_mapping(snapshot, thread->stack_pointer);
        const struct maps_mapping *variables = snapshot_mapping(snapshot, thread->thread_pointer);
        if (variables == mapping && root - thread->thread_pointer + 2048 < 4352) {
            text_format(&text, "variables of thread %d", thread->tid);
            return text_take(&text);
        }
        if (stack == mapping && root - thread->stack_pointer + 128 < STACK_MOST) {
            text_format(&text, "stack of thread %d", thread->tid);
            return text_take(&text);
        }
    }
    if (mapping && mapping->path[0])
        text_format(&text, "data of %s", object_name(mapping->path));
    else if (mapping)
        text_format(&text, "memory mapped at 0x%llx", (unsigned long long)mapping->start);
    else
        text_string(&text, "other memory");
    return text_take(&text);
}

void census_free(struct census_taken *taken) {
    struct census *census = &taken->census;
    snapshot_free(&taken->snapshot);
    free(taken->heaps);
    free(census->program);
    free(census->allocator);
    free(census->arenas);
    free(census->classes);
    free(census->blocks);
    *taken = (struct census_taken){0};
}
