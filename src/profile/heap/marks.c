#include "profile/heap/marks.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"

#define NO_SCOPE SIZE_MAX

// Names are the target's: nothing in them is to control a terminal.
static char *copy_name(const char *name) {
    char *copy = base_copy(name);
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    return copy;
}

// ---- points ----

static void add_point(struct marks *marks, const struct marks_point *point, const char *name) {
    if (marks->count == MARKS_POINTS) {
        marks->left_out++;
        return;
    }
    struct marks_point *added = vector_push(marks->points, marks->count);
    *added = *point;
    added->name = copy_name(name);
}

// ---- scopes ----

static size_t scope_named(struct marks *marks, const char *name) {
    char *copy = copy_name(name);
    size_t at = 0;
    while (at < marks->scope_count && strcmp(marks->scopes[at].name, copy) != 0)
        at++;
    if (at < marks->scope_count || at == MARKS_SCOPES) {
        marks->left_out += at == MARKS_SCOPES;
        free(copy);
        return at == MARKS_SCOPES ? NO_SCOPE : at;
    }
    *vector_push(marks->scopes, marks->scope_count) = (struct marks_scope){.name = copy};
    return marks->scope_count - 1;
}

static struct marks_thread *thread_of(struct marks *marks, uint32_t number) {
    marks->threads =
        base_reach(marks->threads, &marks->thread_count, number, sizeof *marks->threads);
    if (!marks->threads[number]) {
        marks->threads[number] = base_allocate(sizeof *marks->threads[number]);
        memset(marks->threads[number], 0, sizeof *marks->threads[number]);
    }
    return marks->threads[number];
}

static void begin_scope(struct marks *marks, const struct heap_mark *mark) {
    struct marks_thread *thread = thread_of(marks, mark->thread);
    if (thread->depth++ >= MARKS_DEPTH) {
        marks->left_out++;
        return;
    }
    size_t scope = scope_named(marks, mark->name);
    size_t at = thread->depth - 1;
    thread->open[at].scope = scope;
    thread->open[at].time = mark->time;
    thread->open[at].count = thread->count;
    if (scope != NO_SCOPE)
        marks->scopes[scope].entered++;
}

static void end_scope(struct marks *marks, struct marks_thread *thread, uint64_t time) {
    if (!thread->depth || thread->depth-- > MARKS_DEPTH)
        return;
    size_t at = thread->depth;
    if (thread->open[at].scope == NO_SCOPE)
        return;
    struct marks_scope *scope = &marks->scopes[thread->open[at].scope];
    const struct marks_count *from = &thread->open[at].count;
    uint64_t allocated = thread->count.allocated - from->allocated;
    scope->time += time - thread->open[at].time;
    scope->most = allocated > scope->most ? allocated : scope->most;
    scope->count.allocated += allocated;
    scope->count.allocated_bytes += thread->count.allocated_bytes - from->allocated_bytes;
    scope->count.freed_bytes += thread->count.freed_bytes - from->freed_bytes;
}

// ---- what is told ----

void marks_add(struct marks *marks, const struct heap_mark *mark, uint64_t live_bytes,
               uint64_t live_blocks, uint64_t allocated) {
    struct marks_point point = {.kind = mark->kind,
                                .thread = mark->thread,
                                .time = mark->time,
                                .live_bytes = live_bytes,
                                .live_blocks = live_blocks,
                                .allocated = allocated};
    switch (mark->kind) {
    case HEAP_MARK_SCOPE_BEGAN:
        begin_scope(marks, mark);
        break;
    case HEAP_MARK_SCOPE_ENDED:
        end_scope(marks, thread_of(marks, mark->thread), mark->time);
        break;
    default:
        add_point(marks, &point, mark->name);
    }
}

void marks_event(struct marks *marks, const struct heap_event *event) {
    if (event->thread >= marks->thread_count || !marks->threads[event->thread])
        return;
    struct marks_count *count = &marks->threads[event->thread]->count;
    uint64_t before = event->kind == HEAP_ALLOCATED ? 0 : event->before.size;
    switch (event->kind) {
    case HEAP_ALLOCATED:
    case HEAP_RESIZED:
        count->allocated++;
        if (event->block->size > before)
            count->allocated_bytes += event->block->size - before;
        else
            count->freed_bytes += before - event->block->size;
        break;
    case HEAP_FREED:
        count->freed_bytes += before;
        break;
    case HEAP_SKIPPED:
        break;
    }
}

void marks_end(struct marks *marks, uint64_t time) {
    for (size_t i = 0; i < marks->thread_count; i++)
        while (marks->threads[i] && marks->threads[i]->depth)
            end_scope(marks, marks->threads[i], time);
}

void marks_free(struct marks *marks) {
    for (size_t i = 0; i < marks->count; i++)
        free(marks->points[i].name);
    for (size_t i = 0; i < marks->scope_count; i++)
        free(marks->scopes[i].name);
    for (size_t i = 0; i < marks->thread_count; i++)
        free(marks->threads[i]);
    free(marks->points);
    free(marks->scopes);
    free(marks->threads);
    *marks = (struct marks){0};
}
