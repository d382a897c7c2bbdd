// Scopes and markers of a program; and that both sides of the requests mean the same.
#include "profile/heap/marks.h"

#include <string.h>

#include "../../../include/quern/heap.h"
#include "unit.h"
#include "wire/heap_requests.h"
#include "wire/wire_heap.h"

_Static_assert((int)HEAP_REQUEST_LISTENS == QUERN_HEAP_CODE_LISTENS &&
                   (int)HEAP_REQUEST_MARK == QUERN_HEAP_CODE_MARK &&
                   (int)HEAP_REQUEST_ASK == QUERN_HEAP_CODE_ASK &&
                   (int)HEAP_REQUEST_ALLOCATED == QUERN_HEAP_CODE_ALLOCATED &&
                   (int)HEAP_REQUEST_FREED == QUERN_HEAP_CODE_FREED &&
                   (int)HEAP_REQUEST_RESIZED == QUERN_HEAP_CODE_RESIZED &&
                   (int)HEAP_REQUEST_CHUNK == QUERN_HEAP_CODE_CHUNK &&
                   HEAP_REQUEST_PRCTL == QUERN_HEAP_PRCTL,
               "requests");
_Static_assert((int)WIRE_HEAP_SNAPSHOT == QUERN_HEAP_SNAPSHOT &&
                   (int)WIRE_HEAP_SCOPE_BEGAN == QUERN_HEAP_SCOPE_BEGAN &&
                   (int)WIRE_HEAP_SCOPE_ENDED == QUERN_HEAP_SCOPE_ENDED,
               "kinds of marks");
_Static_assert(sizeof(struct quern_heap_stats) == WIRE_HEAP_ANSWERS * sizeof(uint64_t) &&
                   offsetof(struct quern_heap_stats, thread_blocks) ==
                       WIRE_HEAP_THREAD_BLOCKS * sizeof(uint64_t) &&
                   offsetof(struct quern_heap_stats, releases) ==
                       WIRE_HEAP_RELEASES * sizeof(uint64_t),
               "answers");
_Static_assert(sizeof(struct heap_request_link) == sizeof(struct quern_heap_link), "links");

static void mark(struct marks *marks, enum heap_mark_kind kind, const char *name, uint32_t thread,
                 uint64_t time) {
    marks_add(marks, &(struct heap_mark){kind, thread, time, name}, 100 * time, time, 2 * time);
}

static void allocate(struct marks *marks, uint32_t thread, uint64_t size) {
    struct heap_block block = {.size = size};
    marks_event(marks,
                &(struct heap_event){.kind = HEAP_ALLOCATED, .thread = thread, .block = &block});
}

static void resize(struct marks *marks, uint32_t thread, uint64_t from, uint64_t to) {
    struct heap_block block = {.size = to};
    marks_event(marks, &(struct heap_event){.kind = HEAP_RESIZED,
                                            .thread = thread,
                                            .before = {.size = from},
                                            .block = &block});
}

static void release(struct marks *marks, uint32_t thread, uint64_t size) {
    marks_event(marks, &(struct heap_event){
                           .kind = HEAP_FREED, .thread = thread, .before = {.size = size}});
}

TEST(scopes_lie_within_each_other) {
    struct marks marks = {0};
    mark(&marks, HEAP_MARK_SCOPE_BEGAN, "outer", 1, 10);
    allocate(&marks, 1, 100);
    mark(&marks, HEAP_MARK_SCOPE_BEGAN, "inner", 1, 20);
    allocate(&marks, 1, 30);
    release(&marks, 1, 100);
    resize(&marks, 1, 30, 50);
    mark(&marks, HEAP_MARK_SCOPE_ENDED, "", 1, 25);
    allocate(&marks, 1, 7);
    mark(&marks, HEAP_MARK_SCOPE_ENDED, "", 1, 40);
    allocate(&marks, 1, 1000);
    mark(&marks, HEAP_MARK_SCOPE_BEGAN, "inner", 1, 50);
    allocate(&marks, 1, 1);
    marks_end(&marks, 60);
    CHECK_EQ(marks.scope_count, 2);
    const struct marks_scope *outer = &marks.scopes[0], *inner = &marks.scopes[1];
    CHECK(strcmp(outer->name, "outer") == 0 && strcmp(inner->name, "inner") == 0);
    CHECK_EQ(outer->entered, 1);
    CHECK_EQ(outer->time, 30);
    CHECK_EQ(outer->count.allocated, 4);
    CHECK_EQ(outer->count.allocated_bytes, 157);
    CHECK_EQ(outer->count.freed_bytes, 100);
    CHECK_EQ(inner->entered, 2);
    CHECK_EQ(inner->time, 15);
    CHECK_EQ(inner->count.allocated, 3);
    CHECK_EQ(inner->most, 2);
    CHECK_EQ(inner->count.allocated_bytes, 51);
    marks_free(&marks);
}

TEST(threads_have_scopes_of_their_own) {
    struct marks marks = {0};
    mark(&marks, HEAP_MARK_SCOPE_BEGAN, "work", 1, 0);
    mark(&marks, HEAP_MARK_SCOPE_BEGAN, "work", 40, 5);
    allocate(&marks, 1, 10);
    allocate(&marks, 40, 100);
    allocate(&marks, 2, 1000);
    mark(&marks, HEAP_MARK_SCOPE_ENDED, "", 1, 7);
    mark(&marks, HEAP_MARK_SCOPE_ENDED, "", 1, 8); // one too many
    marks_end(&marks, 10);
    CHECK_EQ(marks.scope_count, 1);
    CHECK_EQ(marks.scopes[0].entered, 2);
    CHECK_EQ(marks.scopes[0].count.allocated_bytes, 110);
    CHECK_EQ(marks.scopes[0].time, 12);
    marks_free(&marks);
}

TEST(scopes_may_be_very_deep) {
    struct marks marks = {0};
    for (uint64_t i = 0; i < 3 * MARKS_DEPTH; i++)
        mark(&marks, HEAP_MARK_SCOPE_BEGAN, "deep", 1, i);
    allocate(&marks, 1, 1);
    for (uint64_t i = 0; i < 3 * MARKS_DEPTH; i++)
        mark(&marks, HEAP_MARK_SCOPE_ENDED, "", 1, 1000);
    CHECK_EQ(marks.scopes[0].entered, MARKS_DEPTH);
    CHECK_EQ(marks.scopes[0].count.allocated, MARKS_DEPTH);
    CHECK_EQ(marks.left_out, 2 * MARKS_DEPTH);
    CHECK_EQ(marks.threads[1]->depth, 0);
    marks_free(&marks);
}

TEST(names_and_points_are_bounded) {
    struct marks marks = {0};
    char name[32];
    for (int i = 0; i < MARKS_SCOPES + 10; i++) {
        snprintf(name, sizeof name, "scope %d", i);
        mark(&marks, HEAP_MARK_SCOPE_BEGAN, name, 1, 0);
        mark(&marks, HEAP_MARK_SCOPE_ENDED, "", 1, 0);
    }
    CHECK_EQ(marks.scope_count, MARKS_SCOPES);
    CHECK_EQ(marks.left_out, 10);
    for (int i = 0; i < MARKS_POINTS + 5; i++)
        mark(&marks, HEAP_MARK_POINT, "a\33[31mb\n", 1, 3);
    CHECK_EQ(marks.count, MARKS_POINTS);
    CHECK_EQ(marks.left_out, 15);
    CHECK(strcmp(marks.points[0].name, "a?[31mb?") == 0);
    CHECK_EQ(marks.points[0].live_bytes, 300);
    CHECK_EQ(marks.points[0].allocated, 6);
    marks_free(&marks);
}

UNIT_MAIN()
