#include "tools/flame/supervisor/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vector.h"
#include "supervisor/tool.h"
#include "tools/flame/supervisor/fold.h"
#include "tools/flame/supervisor/interpreted.h"

#define INLINED_MAX     32
#define PATH_LENGTH     16384
#define JUMPS_MAX       4 // from one function to the next, followed
#define DISTANCE_SIZE   4
#define CALL_CODE       0xe8
#define JUMP_CODE       0xe9
#define SHORT_JUMP_CODE 0xeb
#define INTERPRETER     "_PyEval_EvalFrameDefault" // and parts of it: .cold

// The functions at an address, innermost first; then those that the call there goes to: the one
// that is called, and what each of them jumps to at once.
struct place {
    uint64_t address;
    pid_t pid;
    bool is_main;
    bool is_interpreter; // runs the frames of Python
    bool calls_read;
    uint32_t count, called;
    uint32_t first, first_called; // in functions
};

struct flame_names {
    struct symbols *symbols;
    struct calltree *tree;
    struct flame_names_options options;
    struct flame_fold *fold; // NULL: nothing is folded
    struct place *places;
    size_t place_count;
    struct map place_map; // by process and address
    uint32_t *functions;
    size_t function_count;
    uint32_t path[PATH_LENGTH]; // filled from its end
};

struct flame_names *flame_names_new(struct symbols *symbols, struct calltree *tree,
                                    const struct flame_names_options *options) {
    struct flame_names *names = base_allocate(sizeof *names);
    memset(names, 0, sizeof *names);
    names->symbols = symbols;
    names->tree = tree;
    names->options = *options;
    if (options->fold_runtimes || options->fold_others)
        names->fold = flame_fold_new(tree, options->fold_others);
    return names;
}

void flame_names_free(struct flame_names *names) {
    flame_fold_free(names->fold);
    free(names->places);
    map_free(&names->place_map);
    free(names->functions);
    free(names);
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static uint32_t function_of(struct flame_names *names, const struct symbol_frame *frame) {
    if (!frame->object && !frame->name)
        return calltree_function(names->tree, "[unknown]", "");
    const char *group = frame->object ? last_part(frame->object) : "";
    if (frame->name)
        return calltree_function(names->tree, frame->name, group);
    if (strcmp(group, "anon") == 0)
        return calltree_function(names->tree, "[generated code]", "");
    if (*group == '[')
        return calltree_function(names->tree, group, "");
    char *label = symbol_frame_label(frame);
    uint32_t function = calltree_function(names->tree, label, group);
    free(label);
    return function;
}

static void add_function(struct flame_names *names, const struct symbol_frame *frame) {
    uint32_t function = function_of(names, frame);
    *vector_push(names->functions, names->function_count) = function;
}

// What was at an address of generated code when it was sampled; 0: the place is none.
static size_t resolve_moment(struct flame_names *names, struct place *place,
                             struct symbol_frame *frame) {
    struct moment moment;
    struct symbol_code code;
    if (!moments_find(names->options.moments, place->address, &moment))
        return 0;
    if (symbols_code(names->symbols, place->pid, moment.address, moment.time, &code))
        *frame = (struct symbol_frame){.name = code.name, .object = SYMBOLS_GENERATED_CODE};
    else if (!symbols_resolve(names->symbols, place->pid, moment.address, false, frame, 1))
        return 0;
    return 1;
}

static void resolve(struct flame_names *names, struct place *place) {
    struct symbol_frame frames[INLINED_MAX] = {0};
    size_t count = resolve_moment(names, place, frames);
    if (!count)
        count =
            symbols_resolve(names->symbols, place->pid, place->address, false, frames, INLINED_MAX);
    if (!count)
        count = 1;
    place->first = (uint32_t)names->function_count;
    place->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        add_function(names, &frames[i]);
    const char *outer = frames[count - 1].name;
    place->is_interpreter = outer && strncmp(outer, INTERPRETER, strlen(INTERPRETER)) == 0;
    place->is_main = frames[count - 1].name && stack_text_is_main(&frames[count - 1]);
}

// Where the call that ends before an address leads to, if it says so itself, or by a pointer that
// the linker has made for it; 0: it does not.
static uint64_t called_by(struct flame_names *names, pid_t pid, uint64_t end) {
    static const uint8_t by_pointer[] = {0xff, 0x15}; // call *distance(%rip)
    uint8_t bytes[sizeof by_pointer + DISTANCE_SIZE];
    int32_t distance;
    if (!names->options.read_code(names->options.context, pid, end - sizeof bytes, bytes,
                                  sizeof bytes))
        return 0;
    memcpy(&distance, &bytes[sizeof by_pointer], sizeof distance);
    uint64_t place = end + (uint64_t)(int64_t)distance;
    if (memcmp(bytes, by_pointer, sizeof by_pointer) == 0)
        return names->options.read_pointer(names->options.context, pid, end - sizeof bytes, place);
    return bytes[1] == CALL_CODE ? place : 0;
}

// Where a function leads to that does nothing but jump there; 0: it is none.
static uint64_t jumped_to(struct flame_names *names, pid_t pid, uint64_t start) {
    static const uint8_t mark[] = {0xf3, 0x0f, 0x1e, 0xfa}; // endbr64
    uint8_t bytes[sizeof mark + 1 + DISTANCE_SIZE];
    int32_t distance;
    if (!names->options.read_code(names->options.context, pid, start, bytes, sizeof bytes))
        return 0;
    size_t at = memcmp(bytes, mark, sizeof mark) == 0 ? sizeof mark : 0;
    if (bytes[at] == SHORT_JUMP_CODE)
        return start + at + 2 + (uint64_t)(int64_t)(int8_t)bytes[at + 1];
    if (bytes[at] != JUMP_CODE)
        return 0;
    memcpy(&distance, &bytes[at + 1], sizeof distance);
    return start + at + 1 + DISTANCE_SIZE + (uint64_t)(int64_t)distance;
}

// An address within a call is its last byte. Only what begins where the call leads to is a function
// that was called: stubs that jump to other libraries are not.
static void resolve_calls(struct flame_names *names, struct place *place) {
    struct symbol_frame frames[INLINED_MAX] = {0};
    uint64_t at = called_by(names, place->pid, place->address + 1);
    place->calls_read = true;
    place->first_called = (uint32_t)names->function_count;
    while (at && place->called < JUMPS_MAX) {
        size_t count = symbols_resolve(names->symbols, place->pid, at, false, frames, INLINED_MAX);
        if (!count || !frames[count - 1].name || frames[count - 1].offset)
            return;
        add_function(names, &frames[count - 1]);
        place->called++;
        at = jumped_to(names, place->pid, at);
    }
}

static struct place *place_of(struct flame_names *names, pid_t pid, uint64_t address) {
    uint64_t hash = hash_add(hash_add(0, (uint64_t)pid), address);
    struct map_walk walk = map_walk(hash);
    for (uint32_t number; (number = map_next(&names->place_map, &walk)) != MAP_NONE;)
        if (names->places[number].pid == pid && names->places[number].address == address)
            return &names->places[number];
    struct place *place = vector_push(names->places, names->place_count);
    *place = (struct place){.address = address, .pid = pid};
    map_add(&names->place_map, hash);
    resolve(names, place);
    return place;
}

// The functions between a call and what it has led to, whose outermost function is `now`: those
// that are left by jumps, the innermost first. None if the call led there directly. Code without a
// name is never what was called: it is a part of the last of them that lies elsewhere, or was
// jumped to.
static const uint32_t *left_by_jumps(struct flame_names *names, struct place *call, uint32_t now,
                                     uint32_t *count) {
    if (!call->calls_read)
        resolve_calls(names, call);
    const uint32_t *called = &names->functions[call->first_called];
    for (*count = 0; *count < call->called && called[*count] != now;)
        ++*count;
    return called;
}

// ---- frames of an interpreter ----

// Marks that are yet to be shown, and the calls of the interpreter among the addresses.
struct frames {
    const uint64_t *marks;
    size_t count;
    size_t skipped; // calls, from the innermost on, that run no frame yet or any more
};

static size_t count_entries(const uint64_t *marks, size_t count) {
    size_t entries = 0;
    for (size_t i = 0; i < count; i++)
        entries += interpreted_is_entry(marks[i]);
    return entries;
}

// Calls and frames agree at the outer end, where nothing is missing: the innermost call may just
// have begun.
static struct frames match_frames(struct flame_names *names, pid_t pid, const uint64_t *addresses,
                                  size_t *count, bool broken) {
    size_t all = *count, calls = 0;
    while (*count && interpreted_is_mark(addresses[*count - 1]))
        --*count;
    struct frames frames = {&addresses[*count], all - *count, 0};
    for (size_t i = 0; frames.count && i < *count; i++)
        calls += place_of(names, pid, addresses[i])->is_interpreter;
    size_t entries = count_entries(frames.marks, frames.count);
    bool is_whole = !broken && frames.count < SAMPLES_FRAMES;
    if (is_whole && calls < entries)
        frames.count = 0;
    else if (is_whole)
        frames.skipped = calls - entries;
    return frames;
}

// Puts the frames of one call of the interpreter on the path. False: it is shown as itself.
static bool put_frames(struct flame_names *names, struct frames *frames, uint32_t **path) {
    size_t count = 0;
    if (frames->skipped) {
        frames->skipped--;
        return false;
    }
    while (count < frames->count && !interpreted_is_entry(frames->marks[count]))
        count++;
    count += count < frames->count;
    if (!count || (size_t)(*path - names->path) < count + 2)
        return false;
    for (size_t i = 0; i < count; i++)
        *--*path = calltree_function(
            names->tree, names->options.frame_name(names->options.context, frames->marks[i]), "");
    frames->marks += count;
    frames->count -= count;
    return true;
}

void flame_names_add(struct flame_names *names, pid_t pid, const char *process,
                     const uint64_t *addresses, size_t count, bool broken, uint64_t value) {
    uint32_t *path = names->path + PATH_LENGTH;
    bool whole = !broken, was_interpreter = false;
    struct frames frames = match_frames(names, pid, addresses, &count, broken);
    for (size_t i = 0; i < count; i++) {
        struct place *place = place_of(names, pid, addresses[i]);
        uint32_t left = 0;
        bool calls = i && addresses[i - 1] < SYMBOLS_KERNEL_START && !was_interpreter;
        was_interpreter = place->is_interpreter && put_frames(names, &frames, &path);
        if (was_interpreter)
            continue;
        const uint32_t *jumped = calls ? left_by_jumps(names, place, *path, &left) : NULL;
        // Two places are left for the nodes at the outer end.
        if ((size_t)(path - names->path) < place->count + left + 2u) {
            whole = false;
            break;
        }
        while (left)
            *--path = jumped[--left];
        for (uint32_t j = 0; j < place->count; j++)
            *--path = names->functions[place->first + j];
        if (place->is_main && !names->options.show_below_main) {
            whole = true;
            break;
        }
    }
    if (!count || addresses[count - 1] >= SYMBOLS_KERNEL_START)
        *--path = calltree_function(names->tree, SYMBOLS_KERNEL, "");
    else if (!whole)
        *--path = calltree_function(names->tree, "[cut short]", "");
    if (process)
        *--path = calltree_function(names->tree, process, "");
    count = (size_t)(names->path + PATH_LENGTH - path);
    if (names->fold)
        count = flame_fold_path(names->fold, path, count);
    calltree_add(names->tree, path, count, value);
}
