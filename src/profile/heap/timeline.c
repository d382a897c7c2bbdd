#include "profile/heap/timeline.h"

#define FIRST_LENGTH 1000000 // nanoseconds

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void halve(struct timeline *timeline) {
    for (size_t i = 0; i < timeline->count; i += 2) {
        const struct timeline_step *first = &timeline->steps[i];
        const struct timeline_step *second = i + 1 < timeline->count ? first + 1 : first;
        timeline->steps[i / 2] = (struct timeline_step){
            .most = larger(first->most, second->most),
            .last = second->last,
            .resident = larger(first->resident, second->resident),
        };
    }
    timeline->count = (timeline->count + 1) / 2;
    timeline->length *= 2;
}

// The step of a moment; steps in which nothing happened are as those before.
static struct timeline_step *step_at(struct timeline *timeline, uint64_t time) {
    // Nearly all events are in the same step as the one before.
    if (time >= timeline->now_from && time < timeline->now_to)
        return &timeline->steps[timeline->now];
    if (!timeline->length)
        timeline->length = FIRST_LENGTH;
    while (time / timeline->length >= TIMELINE_STEPS)
        halve(timeline);
    size_t at = time / timeline->length;
    for (; timeline->count <= at; timeline->count++)
        timeline->steps[timeline->count] =
            (struct timeline_step){.most = timeline->held, .last = timeline->held};
    timeline->now = at;
    timeline->now_from = at * timeline->length;
    timeline->now_to = timeline->now_from + timeline->length;
    return &timeline->steps[at];
}

void timeline_note(struct timeline *timeline, uint64_t time, uint64_t most, uint64_t last) {
    struct timeline_step *step = step_at(timeline, time);
    timeline->held = last;
    step->last = last;
    step->most = larger(step->most, most);
}

static void on_event(void *context, const struct heap_event *event) {
    struct timeline *timeline = context;
    uint64_t held = timeline->held;
    if (event->kind == HEAP_FREED || event->kind == HEAP_RESIZED)
        held -= event->before.size;
    if (event->kind == HEAP_ALLOCATED || event->kind == HEAP_RESIZED)
        held += event->block->size;
    timeline_note(timeline, event->time, held, held);
}

static void on_sample(void *context, const struct heap_sample *sample) {
    struct timeline_step *step = step_at(context, sample->time);
    step->resident = larger(step->resident, sample->resident);
}

void timeline_end(struct timeline *timeline, uint64_t time) {
    step_at(timeline, time);
    timeline->end = time;
}

static void on_end(void *context, uint64_t time) {
    timeline_end(context, time);
}

void timeline_sink(struct timeline *timeline, struct heap_sink *sink) {
    *sink = (struct heap_sink){
        .context = timeline, .event = on_event, .sample = on_sample, .end = on_end};
}
