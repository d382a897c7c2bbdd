// Diagnoses as a list, and what is said of them: for people, and for other programs.
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "report/diagnose/diagnose.h"
#include "report/heap/file.h"
#include "report/shared/stack_text.h"

// ---- the list ----------------------------------------------------------------------------------

struct diagnosis *diagnoses_add(struct diagnoses *diagnoses, enum diagnosis_kind kind,
                                enum certainty certainty, uint64_t bytes, char *evidence) {
    struct diagnosis *diagnosis = vector_push(diagnoses->items, diagnoses->count);
    *diagnosis = (struct diagnosis){.kind = kind,
                                    .certainty = certainty,
                                    .bytes = bytes,
                                    .evidence = evidence,
                                    .holder = base_copy("")};
    return diagnosis;
}

static struct result_frame copy_of(const struct result_frame *frame) {
    struct result_frame copy = *frame;
    copy.function = frame->function ? base_copy(frame->function) : NULL;
    copy.object = frame->object ? base_copy(frame->object) : NULL;
    copy.path = frame->path ? base_copy(frame->path) : NULL;
    return copy;
}

// Whether the frame is the one that the diagnosis is about, as far as is known.
static bool is_place(struct diagnosis *diagnosis, const struct result_frame *frame) {
    if (own_search_next(&diagnosis->search, frame->function, frame->path, frame->object)) {
        diagnosis->passed = 0;
        return true;
    }
    if (!diagnosis->search.found || diagnosis->passed == diagnosis->outer ||
        !own_frame(frame->function, frame->path, frame->object))
        return false;
    const struct result_frame *before = &diagnosis->frames[diagnosis->own];
    bool is_other = !own_is_within(before->function, before->path, frame->function, frame->path);
    diagnosis->passed += is_other;
    return is_other;
}

void diagnosis_add_frame(struct diagnosis *diagnosis, const struct result_frame *frame) {
    bool has_own = diagnosis->own < diagnosis->frame_count;
    if (is_place(diagnosis, frame))
        diagnosis->own = diagnosis->frame_count;
    else if (!has_own)
        diagnosis->own = diagnosis->frame_count + 1;
    *vector_push(diagnosis->frames, diagnosis->frame_count) = copy_of(frame);
}

static int by_weight(const void *left, const void *right) {
    const struct diagnosis *a = left, *b = right;
    if (a->certainty != b->certainty)
        return a->certainty < b->certainty ? 1 : -1;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

void diagnoses_sort(struct diagnoses *diagnoses) {
    if (diagnoses->count)
        qsort(diagnoses->items, diagnoses->count, sizeof *diagnoses->items, by_weight);
}

void diagnoses_cut(struct diagnoses *diagnoses, size_t count) {
    while (diagnoses->count > count) {
        struct diagnosis *last = &diagnoses->items[--diagnoses->count];
        free(last->evidence);
        free(last->holder);
        result_frames_free(last->frames, last->frame_count);
    }
}

double diagnoses_rate(const struct diagnoses *diagnoses) {
    double rate = 0;
    for (size_t i = 0; i < diagnoses->count; i++)
        rate += diagnoses->items[i].is_growth ? diagnoses->items[i].rate : 0;
    return rate;
}

void diagnoses_free(struct diagnoses *diagnoses) {
    diagnoses_cut(diagnoses, 0);
    free(diagnoses->items);
    *diagnoses = (struct diagnoses){0};
}

// ---- words -------------------------------------------------------------------------------------

static const struct {
    const char *word, *rule, *title, *advice;
} words[DIAGNOSIS_KINDS] = {
    [DIAGNOSIS_GROWS] = {"growing-memory", "Diagnosis_GrowingMemory", "Memory that only grows",
                         "Something is put in and never taken out. Bound it (by number, size or "
                         "age), or remove entries when what they stand for is gone. If it has a "
                         "bound, this run has not reached it."},
    [DIAGNOSIS_HANDLERS] = {"handlers-kept", "Diagnosis_HandlersKept",
                            "Handlers that are registered and never removed",
                            "For each registration there must be a removal: when the connection, "
                            "window or object that it serves is gone."},
    [DIAGNOSIS_BUFFER] = {"growing-buffer", "Diagnosis_GrowingBuffer", "A buffer that only grows",
                          "Something is appended and never taken out. Clear or drain the buffer "
                          "when its content is used, or give it a bound."},
    [DIAGNOSIS_THREAD_LOCAL] = {"growing-thread-data", "Diagnosis_GrowingThreadData",
                                "Memory of each thread that only grows",
                                "Threads of a pool live as long as the program, and so does what "
                                "they keep for themselves. Clear it after each piece of work, or "
                                "give it a bound."},
    [DIAGNOSIS_CHANNEL] = {"undrained-channel", "Diagnosis_UndrainedChannel",
                           "A channel or queue that is not drained",
                           "More is sent than received. Use a channel with a bound, so that the "
                           "sender waits, and look for why the receiver is slow or gone."},
    [DIAGNOSIS_TASKS] = {"tasks-kept", "Diagnosis_TasksKept",
                         "Tasks or threads that are started and never end",
                         "Each task keeps what it owns until it ends. Give it a timeout or a way "
                         "to be cancelled, and keep its handle so that somebody joins or aborts "
                         "it."},
    [DIAGNOSIS_LOST] = {"lost-blocks", "Diagnosis_LostBlocks",
                        "Blocks that are allocated and forgotten",
                        "Free each block, or let something own it that does (unique_ptr, Box). "
                        "Look for Box::leak, mem::forget, into_raw and release."},
    [DIAGNOSIS_KEPT] = {"never-freed", "Diagnosis_NeverFreed", "Memory that is never given back",
                        "A program that builds something and ends may do so. One that runs on must "
                        "free what it no longer needs. Record it for longer, under its usual load, "
                        "and look at who holds most: quern print --view=mine."},
    [DIAGNOSIS_CAPACITY] = {"capacity-kept", "Diagnosis_CapacityKept",
                            "A buffer that keeps its capacity",
                            "If the large size was needed for one rare input, shrink the buffer "
                            "afterwards (realloc, shrink_to_fit), or free it and begin anew."},
    [DIAGNOSIS_THREADS] = {"thread-memory", "Diagnosis_ThreadMemory",
                           "Memory of threads that are gone or idle",
                           "Free what a thread keeps for itself when it ends (a destructor of its "
                           "thread-local storage), and let threads of a pool give back what they "
                           "do not need while they wait. What threads have made for others to use "
                           "may stay."},
    [DIAGNOSIS_TEMPORARY] = {"temporary-allocations", "Diagnosis_TemporaryAllocations",
                             "Short-lived allocations in a hot path",
                             "Each of these blocks is freed before the thread allocates again. Use "
                             "a buffer on the stack, keep one for reuse, or allocate from an "
                             "arena."},
    [DIAGNOSIS_FRAGMENTATION] =
        {"fragmentation", "Diagnosis_Fragmentation", "Memory that cannot be given back",
         "A few blocks that stay hold whole pages of freed ones. Allocate "
         "what lives long apart from what lives briefly (a pool, an arena); "
         "malloc_trim or another allocator may help."},
    [DIAGNOSIS_SPIKE] = {"spike", "Diagnosis_Spike", "A short peak made by few places",
                         "The process needs this much memory for a moment only. Work in smaller "
                         "pieces, or as a stream."},
    [DIAGNOSIS_TINY] = {"tiny-blocks", "Diagnosis_TinyBlocks", "Very many small blocks",
                        "Each block costs 16 bytes and more beside its content. Allocate many at "
                        "once: an array, a pool of objects (quern/heap.h has one)."},
    [DIAGNOSIS_UNUSED] = {"over-allocation", "Diagnosis_OverAllocation",
                          "More is allocated than is used",
                          "Ask for what is needed, or let the buffer grow with its content."},
    [DIAGNOSIS_CYCLE] = {"cycle", "Diagnosis_Cycle", "A circle of blocks that nobody holds",
                         "Reference counts never reach zero in a circle. Let one of its pointers "
                         "be weak (weak_ptr, Weak), or break the circle when its owner goes."},
};

const char *diagnosis_word(enum diagnosis_kind kind) {
    return words[kind].word;
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

const char *diagnosis_rule_help(const char *rule) {
    for (size_t i = 0; i < DIAGNOSIS_KINDS; i++)
        if (strcmp(words[i].rule, rule) == 0)
            return words[i].advice;
    return NULL;
}

// ---- for people --------------------------------------------------------------------------------

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

#define NAME_WIDTH 100 // characters; the rest of a name are arguments of templates

static void print_function(FILE *out, const char *function) {
    char *name = base_copy(function ? function : "???");
    bool is_long = strlen(name) > NAME_WIDTH;
    if (is_long)
        name[NAME_WIDTH] = '\0';
    stack_text_escaped(out, name);
    fputs(is_long ? "..." : "", out);
    free(name);
}

static void print_frame(FILE *out, const struct result_frame *frame, bool first) {
    fprintf(out, "   %s ", first ? "at" : "by");
    print_function(out, frame->function);
    if (frame->path && frame->line) {
        fputs(" (", out);
        stack_text_escaped(out, heap_file_base(frame->path));
        fprintf(out, ":%u)", frame->line);
    } else if (frame->object && (!frame->function || strcmp(frame->function, "???") == 0)) {
        fputs(" (in ", out);
        stack_text_escaped(out, heap_file_base(frame->object));
        fputc(')', out);
    }
    fputc('\n', out);
}

static size_t library_frames(const struct diagnosis *diagnosis, size_t from) {
    size_t count = 0;
    for (; from + count < diagnosis->frame_count; count++) {
        const struct result_frame *frame = &diagnosis->frames[from + count];
        if (own_frame(frame->function, frame->path, frame->object))
            break;
    }
    return count;
}

// The innermost frame, then the program's own; what libraries do in between is a line.
static void print_stack(FILE *out, const struct diagnosis *diagnosis, size_t callers) {
    bool has_own = diagnosis->own < diagnosis->frame_count;
    for (size_t i = 0, lines = 0; i < diagnosis->frame_count && lines < callers; lines++) {
        size_t others = i && has_own ? library_frames(diagnosis, i) : 0;
        if (others > 1 && i + others == diagnosis->frame_count)
            return;
        if (others > 1)
            fprintf(out, "   by ... %zu frames of libraries\n", others);
        else
            print_frame(out, &diagnosis->frames[i], i == 0);
        i += others > 1 ? others : 1;
    }
}

// Where to look.
static void print_own(FILE *out, const struct diagnosis *diagnosis) {
    if (diagnosis->own >= diagnosis->frame_count)
        return;
    const struct result_frame *frame = &diagnosis->frames[diagnosis->own];
    fputs(": ", out);
    print_function(out, frame->function);
    if (frame->path && frame->line) {
        fputs(" (", out);
        stack_text_escaped(out, heap_file_base(frame->path));
        fprintf(out, ":%u)", frame->line);
    }
}

static const char *holder_of(const struct diagnosis *diagnosis) {
    return *diagnosis->holder ? diagnosis->holder
           : diagnosis->is_growth
               ? "With --tool=heap --leak-check=full the report says what holds it."
               : "";
}

void diagnoses_print(FILE *out, const struct diagnoses *diagnoses, size_t callers) {
    if (!diagnoses->count)
        fputs("Nothing stands out.\n", out);
    for (size_t i = 0; i < diagnoses->count; i++) {
        const struct diagnosis *diagnosis = &diagnoses->items[i];
        fprintf(out, "%s%zu. %s (%s)", i ? "\n" : "", i + 1, words[diagnosis->kind].title,
                diagnosis_certainty(diagnosis->certainty));
        print_own(out, diagnosis);
        fputs("\n  ", out);
        print_wrapped(out, diagnosis->evidence);
        print_stack(out, diagnosis, callers);
        if (*holder_of(diagnosis)) {
            fputs("  ", out);
            print_wrapped(out, holder_of(diagnosis));
        }
        fputs("  ", out);
        print_wrapped(out, words[diagnosis->kind].advice);
    }
}

// ---- for programs ------------------------------------------------------------------------------

void diagnoses_results(const struct diagnoses *diagnoses, struct results *results, int pid,
                       bool fails) {
    for (size_t i = 0; i < diagnoses->count; i++) {
        const struct diagnosis *diagnosis = &diagnoses->items[i];
        struct text text = {0};
        text_format(&text, "%s: %s", words[diagnosis->kind].title, diagnosis->evidence);
        enum result_level level =
            diagnosis->certainty == CERTAINTY_POSSIBLE ? RESULT_NOTE : RESULT_WARNING;
        struct result *result =
            results_add(results, words[diagnosis->kind].rule, level, text.bytes, pid);
        text_free(&text);
        result->fails = fails;
        if (*diagnosis->holder)
            results_add_remark(result, diagnosis->holder);
        results_add_remark(result, words[diagnosis->kind].advice);
        struct result_frame *frames = base_allocate((diagnosis->frame_count + 1) * sizeof *frames);
        for (size_t j = 0; j < diagnosis->frame_count; j++)
            frames[j] = copy_of(&diagnosis->frames[j]);
        results_add_stack(results, result, NULL, frames, diagnosis->frame_count);
        result->place = diagnosis->own < diagnosis->frame_count ? diagnosis->own + 1 : 0;
    }
}
