#include "report/results/results.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/vector.h"
#include "report/diagnose/diagnose.h"
#include "report/findings/text.h"
#include "report/shared/own.h"

// ---- rules -------------------------------------------------------------------------------------

static const char *const finding_help[FINDING_KINDS] = {
    [FINDING_READ] = "Memory is read that the program must not touch: beyond a block, after it was "
                     "freed, or below the stack. The second stack says where the block comes from.",
    [FINDING_WRITE] = "Memory is written that the program must not touch. The second stack says "
                      "where the block comes from; look at its size there.",
    [FINDING_CONDITION] = "A decision depends on a value that was never set. --track-origins=yes "
                          "says where the value was created.",
    [FINDING_VALUE] = "An address is computed from a value that was never set. --track-origins=yes "
                      "says where the value was created.",
    [FINDING_JUMP] = "The program jumps to where there is no code.",
    [FINDING_PARAMETER] = "A system call is given memory that was never set, or that is not the "
                          "program's.",
    [FINDING_CLIENT] = "A check that the program asked for has failed.",
    [FINDING_FREE] = "What is freed is no live block: it was freed before, or never allocated.",
    [FINDING_MISMATCHED_FREE] =
        "Memory is freed by another function than fits the one that allocated it: "
        "malloc with free, new with delete, new[] with delete[].",
    [FINDING_OVERLAP] = "Source and destination of a copy overlap; memmove is made for that.",
    [FINDING_FISHY] = "A size that looks like a negative number.",
    [FINDING_POOL] = "A memory pool that does not exist is named.",
    [FINDING_CORE] = "The system is given memory that is not the program's.",
    [FINDING_RESIZE_TO_ZERO] = "realloc to size 0 frees the block with some C libraries and not "
                               "with others.",
    [FINDING_ALIGNMENT] = "An alignment that the function does not permit.",
    [FINDING_SIZE_ALIGNMENT] = "aligned_alloc wants a size that is a multiple of the alignment.",
    [FINDING_ZERO_SIZE] = "A block of no bytes: C libraries differ in what they return.",
    [FINDING_RACE] = "Two threads access the same memory, at least one of them writes, and nothing "
                     "orders the two.",
    [FINDING_THREAD] = "Where a thread was created.",
    [FINDING_UNLOCK_UNLOCKED] = "A lock is released that nobody holds.",
    [FINDING_UNLOCK_FOREIGN] = "A lock is released that another thread holds.",
    [FINDING_PTHREAD] = "A function of the thread library has failed.",
    [FINDING_LOCK_ORDER] = "Locks are taken in different orders: two threads may wait for each "
                           "other for ever.",
    [FINDING_MISUSE] = "A lock, condition variable or thread is used in a wrong way.",
    [FINDING_CLOSED_AGAIN] = "A file descriptor is closed twice: by then the number may belong to "
                             "another file.",
    [FINDING_NOT_OPEN] = "A file descriptor is used that is not open.",
    [FINDING_LEFT_OPEN] = "A file descriptor was never closed.",
    [FINDING_SIZE_MISMATCH] = "The size given to delete or free_sized is not the block's: it may "
                              "be deleted as another type than it was made as.",
    [FINDING_ALIGNMENT_MISMATCH] = "The alignment given to delete is not the one given to new: it "
                                   "may be deleted as another type than it was made as.",
};

static const char *const leak_help[LEAK_KINDS] = {
    [LEAK_DEFINITE] = "Nothing points to this memory any more: it can never be freed.",
    [LEAK_INDIRECT] = "Only memory that is lost itself points to this; mend that first.",
    [LEAK_POSSIBLE] = "Only pointers to the inside of this memory are left.",
    [LEAK_REACHABLE] = "Memory that was not freed at the end, but could have been.",
};

static const char other_rule[] = "OtherError";

const char *result_rule(const char *name) {
    unsigned kind = finding_kind_of_xml(name), leak = leak_kind_of_xml(name);
    return kind < FINDING_KINDS ? finding_kind_xml(kind)
           : leak < LEAK_KINDS  ? leak_kind_xml(leak)
                                : other_rule;
}

const char *result_rule_help(const char *name) {
    unsigned kind = finding_kind_of_xml(name), leak = leak_kind_of_xml(name);
    if (kind < FINDING_KINDS)
        return finding_help[kind];
    if (leak < LEAK_KINDS)
        return leak_help[leak];
    if (strcmp(name, other_rule) == 0)
        return "An error of another tool.";
    const char *help = diagnosis_rule_help(name);
    return help ? help : "A limit that was set for this run was exceeded.";
}

// ---- fingerprints ------------------------------------------------------------------------------

enum { FINGERPRINT_FRAMES = 8 };

static void mix(uint64_t *hash, const char *bytes, size_t size) {
    *hash = hash_bytes(hash_bytes(*hash, bytes, size), "\xff", 1);
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// Without what compilers append to the copies that they make of a function.
static size_t plain_length(const char *function) {
    static const char *const suffixes[] = {".constprop.", ".isra.", ".part.",
                                           ".cold",       ".llvm.", ".lto_priv."};
    size_t length = strlen(function);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const char *found = strstr(function, suffixes[i]);
        if (found && (size_t)(found - function) < length)
            length = (size_t)(found - function);
    }
    return length;
}

// A function that calls itself counts once, however deep it is.
static uint64_t fingerprint(const struct result *result) {
    uint64_t hash = HASH_TEXT_START;
    mix(&hash, result->rule, strlen(result->rule));
    if (!result->stack_count)
        return hash;
    const struct result_stack *stack = &result->stacks[0];
    const char *last = "";
    size_t last_size = 0;
    for (size_t i = 0, taken = 0; i < stack->count && taken < FINGERPRINT_FRAMES; i++) {
        const struct result_frame *frame = &stack->frames[i];
        const char *name = frame->function ? frame->function
                           : frame->object ? base_of(frame->object)
                                           : "?";
        size_t size = frame->function ? plain_length(name) : strlen(name);
        if (size == last_size && memcmp(name, last, size) == 0)
            continue;
        mix(&hash, name, size);
        last = name;
        last_size = size;
        taken++;
    }
    return hash;
}

// ---- making ------------------------------------------------------------------------------------

struct result *results_add(struct results *results, const char *rule, enum result_level level,
                           const char *message, int pid) {
    struct result *result = base_allocate(sizeof *result);
    *result = (struct result){
        .rule = rule, .level = level, .message = base_copy(message), .count = 1, .pid = pid};
    result->fails = level == RESULT_ERROR;
    *vector_push(results->items, results->count) = result;
    result->fingerprint = fingerprint(result);
    return result;
}

static void judge(struct results *results, struct result *result) {
    result->fingerprint = fingerprint(result);
    result->known = results->baseline && baseline_take(results->baseline, result->fingerprint);
}

static char *copy_or_null(const char *string) {
    return string ? base_copy(string) : NULL;
}

char *result_path(const struct symbol_frame *symbol) {
    if (!symbol->file)
        return NULL;
    if (symbol->file[0] == '/' || !symbol->directory || !symbol->directory[0])
        return base_copy(symbol->file);
    struct text path = {0};
    text_format(&path, "%s/%s", symbol->directory, symbol->file);
    return text_take(&path);
}

static struct result_stack *new_stack(struct result *result, struct result_stack stack) {
    struct result_stack *added = vector_push(result->stacks, result->stack_count);
    *added = stack;
    return added;
}

void results_add_stack(struct results *results, struct result *result, const char *title,
                       struct result_frame *frames, size_t count) {
    new_stack(result, (struct result_stack){copy_or_null(title), frames, count});
    if (result->stack_count == 1)
        judge(results, result);
}

static void add_stack(struct result *result, const struct named_stack *stack, char *title) {
    struct result_stack *to = new_stack(
        result,
        (struct result_stack){
            title, base_allocate((stack->shown + 1) * sizeof(struct result_frame)), stack->shown});
    for (size_t i = 0; i < stack->shown; i++) {
        const struct symbol_frame *symbol = &stack->frames[i].symbol;
        to->frames[i] = (struct result_frame){.function = copy_or_null(symbol->name),
                                              .object = copy_or_null(symbol->object),
                                              .path = result_path(symbol),
                                              .line = symbol->line,
                                              .address = stack->frames[i].address};
    }
}

static void write_headline(void *context, const char *text) {
    struct result *result = context;
    free(result->message);
    result->message = base_copy(text);
}

void results_add_remark(struct result *result, const char *text) {
    text += strspn(text, " ");
    *vector_push(result->remarks, result->remark_count) = base_copy(text);
}

static void write_remark(void *context, const char *text) {
    results_add_remark(context, text);
}

// A stack but the first belongs to the remark before it.
static void write_stack(void *context, const struct named_stack *stack) {
    struct result *result = context;
    const char *title = result->stack_count && result->remark_count
                            ? result->remarks[result->remark_count - 1]
                            : NULL;
    add_stack(result, stack, copy_or_null(title));
}

struct result *results_add_finding(struct results *results, const struct named_finding *finding,
                                   const struct stack_text_options *options, int pid) {
    struct result *result =
        results_add(results, finding_kind_xml(finding->facts.kind), RESULT_ERROR, "", pid);
    finding_write(
        finding, options,
        &(struct finding_writer){write_headline, write_stack, write_remark, result, NULL});
    struct text suppression = {0};
    finding_suppression(finding, &suppression);
    result->suppression = text_take(&suppression);
    judge(results, result);
    return result;
}

static enum result_level loss_level(const struct named_loss *loss) {
    switch (loss->facts.kind) {
    case LEAK_DEFINITE:
        return RESULT_ERROR;
    case LEAK_REACHABLE:
        return RESULT_NOTE;
    default:
        return RESULT_WARNING;
    }
}

struct result *results_add_loss(struct results *results, const struct named_loss *loss,
                                size_t index, size_t count,
                                const struct stack_text_options *options, int pid, bool fails) {
    struct result *result =
        results_add(results, leak_kind_xml(loss->facts.kind), loss_level(loss), "", pid);
    result->fails = fails;
    loss_write(loss, index, count, false, options,
               &(struct finding_writer){write_headline, write_stack, write_remark, result, NULL});
    // Its number among all losses says nothing outside the log.
    char *record = strstr(result->message, " in loss record ");
    if (record)
        *record = '\0';
    struct text suppression = {0};
    loss_suppression(loss, &suppression);
    result->suppression = text_take(&suppression);
    judge(results, result);
    return result;
}

void result_frames_free(struct result_frame *frames, size_t count) {
    for (size_t i = 0; i < count; i++) {
        free(frames[i].function);
        free(frames[i].object);
        free(frames[i].path);
    }
    free(frames);
}

static void free_result(struct result *result) {
    for (size_t i = 0; i < result->stack_count; i++) {
        result_frames_free(result->stacks[i].frames, result->stacks[i].count);
        free(result->stacks[i].title);
    }
    for (size_t i = 0; i < result->remark_count; i++)
        free(result->remarks[i]);
    free(result->remarks);
    free(result->stacks);
    free(result->message);
    free(result->suppression);
    free(result);
}

void results_free(struct results *results) {
    for (size_t i = 0; i < results->count; i++)
        free_result(results->items[i]);
    free(results->items);
    baseline_free(results->baseline);
    *results = (struct results){0};
}

// ---- places ------------------------------------------------------------------------------------

// The folder that has the repository's .git, upwards from the current one; that itself if none has.
static const char *top_folder(void) {
    static char folder[PATH_MAX];
    if (folder[0] || !getcwd(folder, sizeof folder))
        return folder;
    char *above = base_copy(folder);
    for (size_t length = strlen(above); length; length = (size_t)(strrchr(above, '/') - above)) {
        struct text mark = {0};
        above[length] = '\0';
        text_format(&mark, "%s/.git", above);
        bool is_top = access(mark.bytes, F_OK) == 0;
        text_free(&mark);
        if (is_top) {
            strcpy(folder, above);
            break;
        }
    }
    free(above);
    return folder;
}

const char *result_relative(const char *path) {
    const char *folder = top_folder();
    size_t length = strlen(folder);
    if (length && strncmp(path, folder, length) == 0 && path[length] == '/')
        return path + length + 1;
    return path;
}

static bool is_in_repository(const char *path) {
    return path[0] == '/' && result_relative(path)[0] != '/' && access(path, R_OK) == 0;
}

// The best frame of a stack, NULL if none has a line.
static const struct result_frame *place_in(const struct result_stack *stack) {
    const struct result_frame *any = NULL, *near = NULL, *own = NULL, *own_near = NULL;
    struct own_search search = {0};
    for (size_t i = 0; i < stack->count; i++) {
        const struct result_frame *frame = &stack->frames[i];
        bool is_first = own_search_next(&search, frame->function, frame->path, frame->object);
        bool is_own = own_frame(frame->function, frame->path, frame->object);
        if (!frame->path || !frame->line)
            continue;
        bool is_near = is_in_repository(frame->path);
        any = any ? any : frame;
        near = !near && is_near ? frame : near;
        own = is_first || (!own && is_own) ? frame : own;
        own_near = is_near && (is_first || (!own_near && is_own)) ? frame : own_near;
    }
    return own_near ? own_near : own ? own : near ? near : any;
}

const struct result_frame *result_place(const struct result *result) {
    if (result->place) {
        const struct result_frame *frame = &result->stacks[0].frames[result->place - 1];
        return frame->path && frame->line ? frame : place_in(&result->stacks[0]);
    }
    for (size_t i = 0; i < result->stack_count; i++) {
        const struct result_frame *frame = place_in(&result->stacks[i]);
        if (frame)
            return frame;
    }
    return NULL;
}
