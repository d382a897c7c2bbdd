// Judges which causes grow.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "profile/heap/trend.h"
#include "report/diagnose/causes.h"

#define FEWEST_WORK    500            // allocations; fewer are no time to judge
#define FEWEST_MOMENTS 16             // that growth lasts: a quarter of the run
#define FIT            0.9            // the share of the changes that a straight line explains
#define LATE_SHARE     0.5            // of the usual rate, in the last quarter
#define LATEST_SHARE   0.3            // in the last eighth
#define KEPT           0.5            // of what it held: less has been given back
#define FEWEST_BLOCKS  16             // that hold what grows, unless it is a large container
#define BUFFER_BYTES   (256ull << 10) // a smaller container alone is something being put together
#define BUSY_FREES     0.15           // of all events are releases
#define SETTLED        0.25           // what the rest of the heap may change by
#define ALIKE          0.15           // most difference between shares of parts that grow together
#define MOST_PARTS     64             // that are compared
#define MULTIPLE_OFF   0.02           // by which a multiple may be missed
#define MOST_CAUSES    8              // more that grow are a program that builds something
#define MOST_JOINED    3              // the same, if only joining has made them so few
#define SHORTEST       1000000000     // nanoseconds that growth lasts, or:
#define SHORTEST_PART  20             // one such part of the run
#define SHARED_CALLERS 4              // of a function that allocates for others
#define KEPT_BYTES     (4ull << 20)   // of a program that never frees; less is not worth a word

// ---- judging -----------------------------------------------------------------------------------

static double gain(const struct growth_cause *cause, size_t from, size_t to) {
    return (double)cause->levels[to] - (double)cause->levels[from];
}

// Whether the level rises on a line from this moment up to the last one, which has its share.
static bool rises_from(const struct growth_cause *cause, size_t first, size_t count) {
    size_t last = count - 1, length = last - first;
    double all = gain(cause, first, last), pace = all / (double)length;
    if (all < (double)DIAGNOSIS_GROWTH_BYTES)
        return false;
    size_t quarter = length / 4, eighth = length / 8;
    return trend_of(cause->levels, first, count).fit >= FIT &&
           gain(cause, last - quarter, last) >= LATE_SHARE * pace * (double)quarter &&
           gain(cause, last - eighth, last) >= LATEST_SHARE * pace * (double)eighth;
}

// Whether it held half as much before, and most of that was given back: it is emptied at times.
static bool was_emptied(const struct growth_cause *cause, size_t count) {
    uint64_t most = 0;
    for (size_t i = 0; i < cause->first; i++)
        most = cause->levels[i] > most ? cause->levels[i] : most;
    return (double)most >= KEPT * (double)cause->levels[count - 1] &&
           (double)cause->levels[cause->first] < KEPT * (double)most;
}

// Bytes a second, and how far that may be off: twice the standard error of the ratio of what eight
// parts of the time have added to how long they took.
static void find_rate(const struct growth_moments *moments, struct growth_cause *cause) {
    enum { PARTS = 8 };
    size_t first = cause->first, length = moments->count - 1 - first;
    double time = (double)(moments->times[moments->count - 1] - moments->times[first]) / 1e9;
    double sum = 0;
    cause->rate = time > 0 ? gain(cause, first, moments->count - 1) / time : 0;
    for (size_t i = 0; i < PARTS; i++) {
        size_t from = first + length * i / PARTS, to = first + length * (i + 1) / PARTS;
        double passed = (double)(moments->times[to] - moments->times[from]) / 1e9;
        double off = gain(cause, from, to) - cause->rate * passed;
        sum += off * off;
    }
    cause->error = time > 0 ? 2 * sqrt(sum * PARTS / (PARTS - 1)) / time : 0;
}

// One block that is enlarged, or many that are kept.
static bool has_enough_blocks(const struct growth_cause *cause) {
    return cause->blocks >= FEWEST_BLOCKS || cause->boxes.content >= BUFFER_BYTES;
}

// Whether the program gave back memory while this grew.
static bool is_busy(const struct growth_moments *moments, size_t first) {
    size_t last = moments->count - 1;
    double frees = (double)(moments->frees[last] - moments->frees[first]);
    double work = (double)(moments->work[last] - moments->work[first]);
    return frees >= BUSY_FREES * (frees + work);
}

// When it had this share of what it has gained.
static uint64_t time_of_share(const struct growth_moments *moments,
                              const struct growth_cause *cause, double share) {
    size_t last = moments->count - 1, moment = cause->first;
    while (moment < last &&
           gain(cause, cause->first, moment) < share * gain(cause, cause->first, last))
        moment++;
    return moments->times[moment];
}

// What grows for a moment of a run that goes on for long is a start: hardly anything was added
// afterwards.
static bool lasts(const struct growth_moments *moments, const struct growth_cause *cause,
                  uint64_t end) {
    uint64_t time = time_of_share(moments, cause, 0.9) - time_of_share(moments, cause, 0.1);
    return time >= SHORTEST || time * SHORTEST_PART >= end;
}

static void judge(const struct growth *growth, struct growth_cause *cause) {
    const struct growth_moments *moments = &growth->moments[cause->axis];
    size_t count = moments->count;
    bool rises = false;
    if (!has_enough_blocks(cause) ||
        (double)cause->at_turn < KEPT * (double)cause->levels[count - 1])
        return;
    for (size_t first = 0; first + FEWEST_MOMENTS < count && !rises; first++) {
        rises = rises_from(cause, first, count);
        cause->first = first;
    }
    if (!rises || was_emptied(cause, count) || !lasts(moments, cause, growth->end))
        return;
    find_rate(moments, cause);
    cause->grows = is_busy(moments, cause->first);
    cause->is_kept = !cause->grows;
}

// Whether what does not grow stays as it is.
static bool is_settled(const struct causes *causes) {
    size_t count = causes->growth->moments[causes->axis].count;
    double least = INFINITY, most = 0, grown = 0;
    size_t first = 0;
    for (size_t i = 0; i < causes->count; i++) {
        const struct growth_cause *cause = &causes->items[i];
        if (cause->grows && gain(cause, cause->first, count - 1) > grown) {
            grown = gain(cause, cause->first, count - 1);
            first = cause->first;
        }
    }
    for (size_t moment = first + (count - first) / 4; moment < count; moment++) {
        double rest = 0;
        for (size_t i = 0; i < causes->count; i++)
            rest += causes->items[i].grows ? 0 : (double)causes->items[i].levels[moment];
        least = fmin(least, rest);
        most = fmax(most, rest);
    }
    return most - least <= SETTLED * (most + grown) + (double)DIAGNOSIS_GROWTH_BYTES;
}

// A function that allocates for many callers, of whose memory only some grows, is none of the
// causes: these callers are.
static void split_shared(struct causes *causes) {
    for (size_t i = 0; i < causes->count; i++) {
        if (!causes->items[i].grows)
            continue;
        size_t parts = causes_split(causes, i), growing = 0, last = causes->count;
        for (size_t j = last - parts; j < last; j++) {
            judge(causes->growth, &causes->items[j]);
            growing += causes->items[j].grows;
        }
        bool is_shared = parts >= SHARED_CALLERS && growing && growing * 2 <= parts;
        for (size_t j = last; !is_shared && j-- > last - parts;)
            causes_remove(causes, j);
        if (is_shared)
            causes_remove(causes, i--);
    }
}

static int by_gain(const void *left, const void *right) {
    const struct growth_cause *a = left, *b = right;
    if (a->grows != b->grows)
        return a->grows ? -1 : 1;
    return a->at_turn > b->at_turn ? -1 : a->at_turn < b->at_turn;
}

// Causes that the same variable holds are one, the largest. They are in order.
static void join_held(struct causes *causes) {
    struct growth_cause *items = causes->items;
    for (size_t i = 0; i < causes->count; i++) {
        for (size_t j = 0; j < i && items[i].grows; j++) {
            if (!items[j].grows || !items[i].holder || !items[j].holder ||
                strcmp(items[i].holder, items[j].holder) != 0 ||
                strcmp(items[i].holder, HEAP_HELD_BY_NOBODY) == 0)
                continue;
            items[i].grows = false;
            items[j].rate += items[i].rate;
            items[j].error += items[i].error;
            items[j].joined++;
        }
    }
}

static size_t count_growing(const struct causes *causes) {
    size_t growing = 0;
    for (size_t i = 0; i < causes->count; i++)
        growing += causes->items[i].grows;
    return growing;
}

// Whether two causes have the same share of what they come to at all moments: a request that adds
// to one adds to the other.
static bool grow_alike(const struct causes *causes, const struct growth_cause *left,
                       const struct growth_cause *right) {
    size_t count = causes->growth->moments[causes->axis].count;
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs((double)left->levels[i] / (double)left->levels[count - 1] -
                               (double)right->levels[i] / (double)right->levels[count - 1]));
    return most <= ALIKE;
}

// Whether a cause may be a part of another: handlers and tasks are told by themselves.
static bool may_be_part(const struct causes *causes, const struct growth_cause *cause) {
    return cause->grows && !cause->boxes.count && !growth_has_pattern(causes->growth, cause);
}

static void add_part(struct growth_cause *whole, struct growth_cause *part, size_t count) {
    for (size_t i = 0; i < count; i++) {
        whole->levels[i] += part->levels[i];
        part->levels[i] = 0;
    }
    whole->at_turn += part->at_turn;
    whole->blocks += part->blocks;
    whole->rate += part->rate;
    whole->error += part->error;
    whole->joined += part->joined + 1;
    part->grows = false;
}

// What a function makes by others, and keeps in no container of theirs, is its own: the parts of a
// session belong to the function that opens it.
static void join_parts(struct causes *causes) {
    size_t count = causes->growth->moments[causes->axis].count;
    struct growth_cause *items = causes->items;
    if (count_growing(causes) > MOST_PARTS)
        return;
    for (size_t i = 0; i < causes->count; i++) {
        bool may_be = may_be_part(causes, &items[i]);
        for (size_t j = 0; j < causes->count && may_be && items[i].grows; j++)
            if (j != i && items[j].grows && grow_alike(causes, &items[i], &items[j]) &&
                causes_calls(causes, &items[j], &items[i]))
                add_part(&items[j], &items[i], count);
    }
}

// Whether the blocks of one are a multiple of the other's, as they are of what each request adds.
static bool are_multiples(const struct growth_cause *left, const struct growth_cause *right) {
    double ratio = (double)left->blocks / (double)right->blocks;
    ratio = ratio < 1 ? 1 / ratio : ratio;
    return fabs(ratio - round(ratio)) <= MULTIPLE_OFF;
}

// Where too many functions grow to be causes: those that grow in step because one function calls
// them all are one, that function.
static void join_by_caller(struct causes *causes) {
    size_t count = causes->growth->moments[causes->axis].count, growing = count_growing(causes);
    struct growth_cause *largest = NULL, *items = causes->items;
    if (growing <= MOST_CAUSES || growing > MOST_PARTS)
        return;
    for (size_t i = 0; i < causes->count; i++)
        if (items[i].grows && (!largest || items[i].at_turn > largest->at_turn))
            largest = &items[i];
    for (size_t depth = largest->depth + 1; depth < CAUSE_CALLERS; depth++) {
        struct growth_cause caller = *largest;
        bool is_part[MOST_PARTS] = {0};
        size_t parts = 0, grows = 0;
        caller.depth = depth;
        for (size_t i = 0; i < causes->count; i++) {
            bool is_it = (&items[i] == largest || may_be_part(causes, &items[i])) &&
                         grow_alike(causes, largest, &items[i]) &&
                         are_multiples(largest, &items[i]) &&
                         causes_calls(causes, &caller, &items[i]);
            if (items[i].grows)
                is_part[grows++] = is_it && &items[i] != largest;
            parts += is_it;
        }
        if (growing + 1 - parts > MOST_JOINED)
            continue;
        largest->depth = depth;
        for (size_t i = causes->count; i-- > 0;)
            if (items[i].grows && is_part[--grows])
                add_part(largest, &items[i], count);
        return;
    }
}

// A program that gives hardly anything back may be building something. That is said once, of the
// largest cause.
static void describe_kept(const struct causes *causes, struct diagnoses *diagnoses) {
    const struct growth_cause *largest = NULL;
    for (size_t i = 0; i < causes->count; i++) {
        const struct growth_cause *cause = &causes->items[i];
        if (cause->is_kept && (!largest || cause->at_turn > largest->at_turn))
            largest = cause;
    }
    if (!largest || largest->at_turn < KEPT_BYTES)
        return;
    const struct growth_moments *moments = &causes->growth->moments[causes->axis];
    if (moments->times[moments->count - 1] - moments->times[largest->first] >= SHORTEST)
        growth_describe_kept(causes->growth, largest, diagnoses);
}

// Judges the causes on an axis and adds diagnoses of those that grow; how many there are.
static size_t judge_axis(const struct growth *growth, enum growth_axis axis,
                         struct diagnoses *diagnoses) {
    struct causes causes;
    if (growth->work < FEWEST_WORK || growth->moments[axis].count <= FEWEST_MOMENTS)
        return 0;
    causes_join(&causes, growth, axis);
    for (size_t i = 0; i < causes.count; i++)
        judge(growth, &causes.items[i]);
    split_shared(&causes);
    size_t most = count_growing(&causes) > MOST_CAUSES ? MOST_JOINED : MOST_CAUSES;
    join_parts(&causes);
    join_by_caller(&causes);
    size_t growing = count_growing(&causes);
    if (growing > most || !is_settled(&causes))
        growing = 0;
    if (causes.count)
        qsort(causes.items, causes.count, sizeof *causes.items, by_gain);
    join_held(&causes);
    for (size_t i = 0; growing && i < causes.count; i++)
        if (causes.items[i].grows)
            growth_describe(growth, &causes.items[i], diagnoses);
    causes_free(&causes);
    return growing;
}

void growth_judge_kept(const struct growth *growth, struct diagnoses *diagnoses) {
    const struct growth_moments *moments = &growth->moments[GROWTH_BY_WORK];
    struct causes causes;
    if (growth->work < FEWEST_WORK || moments->count <= FEWEST_MOMENTS || is_busy(moments, 0))
        return;
    causes_join(&causes, growth, GROWTH_BY_WORK);
    for (size_t i = 0; i < causes.count; i++)
        judge(growth, &causes.items[i]);
    describe_kept(&causes, diagnoses);
    causes_free(&causes);
}

void growth_judge(const struct growth *growth, struct diagnoses *diagnoses) {
    size_t growing = 0;
    for (enum growth_axis axis = 0; axis < GROWTH_AXES && !growing; axis++)
        growing = judge_axis(growth, axis, diagnoses);
}
