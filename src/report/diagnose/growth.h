// Which parts of a program keep growing, and at which rate: the one model of growth. quern
// diagnose, quern check, budgets, the view "growth", the page and the results all ask here.
//
// Words:
//   work      the number of allocations so far: the clock by which growth is judged first. It
//   stands
//             still while the program waits, frees at its end, or is searched for leaks, and it
//             does not depend on how fast the machine is
//   axis      work or time. What a timer adds grows with the time, whatever else the program does
//   moment    one of 64 points at equal distances on an axis
//   level     what a stack holds at a moment: the least between the moment before and this one, so
//             that what comes and goes does not count; of containers (containers.h) their content
//   shutdown  releases without pause, with hardly an allocation among them, up to the end: what a
//             program frees when it ends. Growth is judged up to there
//   cause     a function of the program (shared/own.h) with all stacks whose first own frame it is;
//             a table and what it holds are one cause, whatever library calls are between. Causes
//             that the same variable holds are one (causes.h)
//
// A cause grows if its level rises on a straight line up to the shutdown, if the latest part of the
// work has added its share, and if the program meanwhile did other work, whose memory it gave back.
// So what is filled at the start, what has a bound, and what was given back do not grow. Neither
// does what a program builds that does nothing else.
//
// The recording is read twice: `file` is of the first reading. Supervisor context.
#ifndef QUERN_REPORT_DIAGNOSE_GROWTH_H
#define QUERN_REPORT_DIAGNOSE_GROWTH_H

#include "report/diagnose/containers.h"
#include "report/diagnose/diagnose.h"

#define GROWTH_MOMENTS 64

enum growth_axis { GROWTH_BY_WORK, GROWTH_BY_TIME, GROWTH_AXES };

struct growth_stack {
    uint64_t live, boxed;        // bytes; in containers
    uint64_t blocks;             // live ones
    uint64_t least[GROWTH_AXES]; // bytes outside of containers since the last moment
    uint64_t at_turn, blocks_at_turn, turn;
    uint64_t *levels[GROWTH_AXES]; // at each moment; NULL: it never held anything worth it
    char *holder;                  // in words; NULL: not known
};

struct growth_moments {
    size_t next;
    size_t count; // before the shutdown; after the end
    uint64_t times[GROWTH_MOMENTS], work[GROWTH_MOMENTS], frees[GROWTH_MOMENTS];
    struct container *boxes; // containers at the last moment that is no shutdown
    size_t box_count;
};

struct growth {
    const struct heap_file *file;
    struct growth_stack *stacks; // by number
    size_t stack_count;
    struct containers containers;
    struct map_texts functions;  // own functions of stacks
    uint32_t *function_by_stack; // its number there plus one; 0: not looked for yet
    uint64_t work, total_work;
    uint64_t live; // bytes of all
    uint64_t frees;
    struct growth_moments moments[GROWTH_AXES];
    // What may be the shutdown: when it began, its last release, and what there was in it. Each is
    // a turn: what a stack held then is noted when it changes for the first time afterwards.
    bool is_shutdown;
    uint64_t turn, turn_time, turn_live, latest;
    uint64_t latest_event, rest, turn_rest; // how long the program rests between events; before it
    uint64_t allocated, freed;
    uint64_t stretch, stretch_allocated; // events lately, and allocations among them
    uint64_t end;                        // of the recording
};

struct growth *growth_new(const struct heap_file *file);
void growth_free(struct growth *);
void growth_sink(struct growth *, struct heap_sink *);
// Adds a diagnosis for each cause that grows. After the end.
void growth_judge(const struct growth *, struct diagnoses *);
// Adds a diagnosis if the program gives hardly anything back, so that growth cannot be told.
void growth_judge_kept(const struct growth *, struct diagnoses *);
// Prints the causes that grow, so many at most, with so many frames of each stack.
void growth_view(FILE *out, const struct growth *, size_t top, size_t callers);

#endif
