// Which pattern a cause that grows follows, and the sentences for it. The functions between the
// program's own and the allocator tell most: a channel, a task, a reference count.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "report/diagnose/causes.h"
#include "report/heap/rows.h"
#include "report/heap/text.h"
#include "report/shared/own.h"

#define PATTERN_SHARE 0.02      // of a cause's bytes on stacks that follow a pattern
#define BUFFER_SHARE  0.4       // of them the content of containers, which may be half empty
#define LIKELY_TIME   500000000 // nanoseconds; growth of less is only possible,
#define LIKELY_BLOCKS 200       // and so is growth of fewer blocks, unless containers hold it
#define HOLDING_BYTES 4         // of a container for each block: a pointer to every other one
#define NEAR_CALLERS  3         // library frames above the first own one that are looked at

struct pattern {
    enum diagnosis_kind kind;
    bool is_own; // the word stands in the program's own function, not in the library's
    const char *const *words;
};

static const char *const tasks[] = {"::spawn", "runtime::task", "pthread_create", "std::thread",
                                    NULL};
static const char *const channels[] = {"mpsc", "channel", "crossbeam", "flume", NULL};
static const char *const locals[] = {"localkey", "thread::local", "thread_local", NULL};
static const char *const queues[] = {"channel",    "enqueue", "queue_push",
                                     "push_queue", "queue",   NULL};
static const char *const handlers[] = {"subscri",  "listener", "add_handler",    "set_handler",
                                       "callback", "observer", "signal_connect", "on_event",
                                       "register", NULL};
static const char *const starts[] = {"spawn", "detach", "start_task", "start_thread", NULL};
static const char *const counts[] = {"rc::rc",     "rc::new",     "arc::new", "sync::arc",
                                     "shared_ptr", "make_shared", NULL};

// The first that fits is the pattern. Reference counts come last and are judged apart.
static const struct pattern patterns[] = {
    {DIAGNOSIS_TASKS, false, tasks},         {DIAGNOSIS_CHANNEL, false, channels},
    {DIAGNOSIS_THREAD_LOCAL, false, locals}, {DIAGNOSIS_HANDLERS, true, handlers},
    {DIAGNOSIS_CHANNEL, true, queues},       {DIAGNOSIS_TASKS, true, starts},
    {DIAGNOSIS_CYCLE, false, counts},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

// ---- words on a stack --------------------------------------------------------------------------

struct search {
    struct own_search own;
    bool found[PATTERNS];
    size_t beyond; // frames after the first own one
};

static bool ends_with(const char *text, size_t size, const char *end) {
    size_t length = strlen(end);
    return size >= length && memcmp(text + size - length, end, length) == 0;
}

// Where the bracket at `name` is closed, or the end of the text. An arrow closes nothing.
static const char *behind_bracket(const char *name) {
    size_t depth = 0;
    for (const char *at = name; *at; at++) {
        depth += *at == '<' || *at == '(';
        depth -= *at == ')' || (*at == '>' && at[-1] != '-');
        if (!depth)
            return at + 1;
    }
    return name + strlen(name);
}

// Whether a list of arguments or of generic arguments begins here, behind `size` bytes of a name.
// What begins with a bracket is a type of Rust, and stays.
static bool begins_arguments(const char *at, const char *before, size_t size) {
    if (*at == '(')
        return !ends_with(before, size, "operator") && strncmp(at, "(anonymous ", 11) != 0;
    return *at == '<' && size && !ends_with(before, size, "operator") &&
           (isalnum((unsigned char)before[size - 1]) || before[size - 1] == '_' ||
            ends_with(before, size, "::"));
}

// Copies a function's name in small letters, without arguments and generic arguments: they say what
// it works on, not what it does.
static void copy_bare(char *to, size_t room, const char *name) {
    size_t size = 0;
    while (*name && size + 1 < room) {
        if (begins_arguments(name, to, size)) {
            size -= ends_with(to, size, "::") ? 2 : 0;
            name = behind_bracket(name);
        } else {
            to[size++] = (char)tolower((unsigned char)*name++);
        }
    }
    to[size] = '\0';
}

static bool has_word(const char *name, const char *const *words) {
    char lower[512];
    copy_bare(lower, sizeof lower, name ? name : "");
    for (; *words; words++)
        if (strstr(lower, *words))
            return true;
    return false;
}

// The function alone: what a name says of its arguments or of the trait is not what it does.
static void look_for_words(void *context, const struct heap_place *place,
                           const struct symbol_frame *frame) {
    struct search *search = context;
    char *path = result_path(frame);
    bool had_own = search->own.found;
    bool is_first = own_search_next(&search->own, frame->name, path, frame->object);
    if (had_own && !search->own.found)
        *search = (struct search){0}; // that was the allocator
    else if (had_own)
        search->beyond++;
    bool is_own = is_first || own_frame(frame->name, path, frame->object);
    for (size_t i = 0; i < PATTERNS && search->beyond <= NEAR_CALLERS; i++) {
        bool is_local = patterns[i].kind == DIAGNOSIS_THREAD_LOCAL;
        bool is_here = is_own == patterns[i].is_own && (!had_own || is_local);
        const char *name = is_own && frame->linkage && !frame->name ? frame->linkage : frame->name;
        search->found[i] |= is_here && has_word(name, patterns[i].words);
        search->found[i] |= is_here && !is_own && path && has_word(path, patterns[i].words);
    }
    free(path);
}

// Whether a container of another place is large enough to hold what the cause holds, so that it is
// no circle.
static bool may_be_held(const struct growth *growth, const struct growth_cause *cause) {
    const struct growth_moments *moments = &growth->moments[cause->axis];
    for (size_t i = 0; i < moments->box_count; i++)
        if (container_content(&moments->boxes[i], growth->work) >= HOLDING_BYTES * cause->blocks)
            return true;
    return false;
}

// *stack becomes the one that shows the pattern best.
static enum diagnosis_kind pattern_of(const struct growth *growth, const struct growth_cause *cause,
                                      uint32_t *stack) {
    uint64_t bytes[PATTERNS] = {0};
    uint32_t largest[PATTERNS] = {0};
    for (size_t i = 0; i < cause->stack_count; i++) {
        struct search search = {0};
        rows_frames(growth->file, cause->stacks[i], look_for_words, &search);
        for (size_t j = 0; j < PATTERNS; j++) {
            uint64_t held = growth->stacks[cause->stacks[i]].at_turn;
            bytes[j] += search.found[j] ? held : 0;
            if (search.found[j] && held >= growth->stacks[largest[j]].at_turn)
                largest[j] = cause->stacks[i];
        }
    }
    bool is_lost = cause->holder && strcmp(cause->holder, HEAP_HELD_BY_NOBODY) == 0;
    bool has_threads = cause->boxes.threads > 1 && !cause->boxes.is_shared;
    for (size_t i = 0; i < PATTERNS; i++) {
        if ((double)bytes[i] < PATTERN_SHARE * (double)cause->at_turn || !bytes[i])
            continue;
        *stack = largest[i];
        if (patterns[i].kind != DIAGNOSIS_CYCLE ||
            (!cause->boxes.count && (is_lost || (!cause->holder && !may_be_held(growth, cause)))))
            return patterns[i].kind;
    }
    *stack = cause->stack;
    if (is_lost)
        return DIAGNOSIS_LOST;
    if (has_threads)
        return DIAGNOSIS_THREAD_LOCAL;
    if ((double)cause->boxes.content >= BUFFER_SHARE * (double)cause->at_turn &&
        cause->blocks < cause->boxes.count + 16)
        return DIAGNOSIS_BUFFER;
    return DIAGNOSIS_GROWS;
}

bool growth_has_pattern(const struct growth *growth, const struct growth_cause *cause) {
    uint32_t stack;
    enum diagnosis_kind kind = pattern_of(growth, cause, &stack);
    return kind != DIAGNOSIS_GROWS && kind != DIAGNOSIS_CYCLE;
}

// ---- sentences ---------------------------------------------------------------------------------

static void add_containers(struct text *text, const struct growth_cause *cause) {
    char size[32], number[32];
    if (!cause->boxes.count) {
        text_string(text,
                    " No container was enlarged here: they are in a list, a tree or a table of "
                    "another place, or forgotten.");
    } else if (cause->boxes.count == 1) {
        text_format(text, " That includes a container that was enlarged %u times and has %s bytes.",
                    cause->boxes.steps, text_number(size, cause->boxes.largest));
    } else {
        text_format(text, " That includes %s containers; the largest has %s bytes.",
                    text_number(number, cause->boxes.count),
                    text_number(size, cause->boxes.largest));
    }
}

static char *evidence_of(const struct growth *growth, const struct growth_cause *cause) {
    char rate[32], error[32], first[32], last[32], blocks[32];
    struct text text = {0};
    const struct growth_moments *moments = &growth->moments[cause->axis];
    text_format(&text, "+%s ± %s bytes a second%s, while the rest has settled: ",
                text_number(rate, (uint64_t)(cause->rate + 0.5)),
                text_number(error, (uint64_t)(cause->error + 0.5)),
                cause->error > cause->rate ? ", unevenly" : ", steadily");
    text_format(&text, "from %s bytes at %.1f s to %s in %s blocks at %.1f s.",
                text_number(first, cause->levels[cause->first]),
                (double)moments->times[cause->first] / 1e9, text_number(last, cause->at_turn),
                text_number(blocks, cause->blocks),
                (double)moments->times[moments->count - 1] / 1e9);
    add_containers(&text, cause);
    if (cause->stack_count > 1)
        text_format(&text, " They come by %zu stacks; this is one of them.", cause->stack_count);
    if (cause->joined)
        text_format(&text, " %zu further functions add to the same.", cause->joined);
    return text_take(&text);
}

void growth_describe(const struct growth *growth, const struct growth_cause *cause,
                     struct diagnoses *diagnoses) {
    const struct growth_moments *moments = &growth->moments[cause->axis];
    uint64_t time = moments->times[moments->count - 1] - moments->times[cause->first];
    uint32_t stack;
    enum diagnosis_kind kind = pattern_of(growth, cause, &stack);
    bool is_guess = kind == DIAGNOSIS_CYCLE && !cause->holder;
    bool is_unsteady = cause->error > cause->rate;
    bool is_little = cause->blocks < LIKELY_BLOCKS && !cause->boxes.count;
    enum certainty certainty = time < LIKELY_TIME || is_guess || is_unsteady || is_little
                                   ? CERTAINTY_POSSIBLE
                                   : CERTAINTY_LIKELY;
    struct diagnosis *diagnosis =
        diagnoses_add(diagnoses, kind, certainty, cause->at_turn, evidence_of(growth, cause));
    diagnosis->stack = stack;
    diagnosis->outer = cause->depth;
    diagnosis->rate = cause->rate;
    diagnosis->rate_error = cause->error;
    diagnosis->is_growth = true;
    if (cause->holder) {
        free(diagnosis->holder);
        diagnosis->holder = base_copy(cause->holder);
    }
}

void growth_describe_kept(const struct growth *growth, const struct growth_cause *cause,
                          struct diagnoses *diagnoses) {
    char held[32], rate[32], bytes[32];
    struct text text = {0};
    text_format(
        &text,
        "The program frees hardly anything, %.0f %% of its blocks, so growth cannot be told "
        "from building something: %s bytes are alive in the end. This function holds %s of "
        "them and added %s bytes a second.",
        100.0 * (double)growth->frees / (double)growth->work, text_number(held, growth->turn_live),
        text_number(bytes, cause->at_turn), text_number(rate, (uint64_t)(cause->rate + 0.5)));
    struct diagnosis *diagnosis = diagnoses_add(diagnoses, DIAGNOSIS_KEPT, CERTAINTY_POSSIBLE,
                                                cause->at_turn, text_take(&text));
    diagnosis->stack = cause->stack;
    diagnosis->outer = cause->depth;
}
