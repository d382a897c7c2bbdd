#include "tools/flame/supervisor/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vector.h"
#include "supervisor/tool.h"
#include "tools/flame/supervisor/fold.h"
#include "tools/shared/supervisor/interpreted.h"

#define INLINED_MAX     32
#define PATH_LENGTH     16384
#define JUMPS_MAX       4 // from one function to the next, followed
#define DISTANCE_SIZE   4
#define CALL_CODE       0xe8
#define JUMP_CODE       0xe9
#define SHORT_JUMP_CODE 0xeb

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
    uint64_t addresses[FLAME_STACK_MAX]; // of the stack in hand
    uint32_t path[PATH_LENGTH];          // filled from its end
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

static void resolve_mark(struct flame_names *names, struct place *place) {
    struct text name = {0};
    names->options.add_frame_name(names->options.context, place->address, &name);
    uint32_t function = calltree_function(names->tree, name.size ? name.bytes : "?", "");
    place->first = (uint32_t)names->function_count;
    place->count = 1;
    *vector_push(names->functions, names->function_count) = function;
    text_free(&name);
}

static void resolve(struct flame_names *names, struct place *place) {
    struct symbol_frame frames[INLINED_MAX] = {0};
    if (interpreted_is_mark(place->address)) {
        resolve_mark(names, place);
        return;
    }
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
    place->is_interpreter = interpreted_is_interpreter(frames[count - 1].name);
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

// ---- stacks ----

struct process_names {
    struct flame_names *names;
    pid_t pid;
};

static bool is_call_of_interpreter(void *context, uint64_t address) {
    const struct process_names *process = context;
    return place_of(process->names, process->pid, address)->is_interpreter;
}

void flame_names_add(struct flame_names *names, pid_t pid, const char *process,
                     const uint64_t *stack, size_t count, bool broken, uint64_t value) {
    uint32_t *path = names->path + PATH_LENGTH;
    uint64_t *addresses = names->addresses;
    bool whole = !broken;
    size_t marks = 0;
    while (marks < count && interpreted_is_mark(stack[count - marks - 1]))
        marks++;
    count = interpreted_put(stack, count < FLAME_STACK_MAX ? count : FLAME_STACK_MAX,
                            broken || marks == SAMPLES_FRAMES, is_call_of_interpreter,
                            &(struct process_names){names, pid}, addresses);
    for (size_t i = 0; i < count; i++) {
        struct place *place = place_of(names, pid, addresses[i]);
        uint32_t left = 0;
        bool calls = i && addresses[i - 1] < SYMBOLS_KERNEL_START &&
                     !interpreted_is_mark(addresses[i - 1]) && !interpreted_is_mark(addresses[i]);
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
