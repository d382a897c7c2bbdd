#include "report/flame_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/stack_text.h"

#define INLINED_MAX 32
#define PATH_LENGTH 16384
#define FIRST_SLOTS 4096

// The functions at an address, innermost first.
struct place {
    uint64_t address;
    pid_t pid; // 0: empty
    bool is_main;
    uint32_t count;
    uint32_t first; // in functions
};

struct flame_names {
    struct symbols *symbols;
    struct calltree *tree;
    bool show_below_main;
    struct place *places;
    size_t room, count;
    uint32_t *functions;
    size_t function_count, function_room;
    uint32_t path[PATH_LENGTH]; // filled from its end
};

struct flame_names *flame_names_new(struct symbols *symbols, struct calltree *tree,
                                    bool show_below_main) {
    struct flame_names *names = base_allocate(sizeof *names);
    memset(names, 0, sizeof *names);
    names->symbols = symbols;
    names->tree = tree;
    names->show_below_main = show_below_main;
    names->room = FIRST_SLOTS;
    names->places = base_allocate(names->room * sizeof *names->places);
    memset(names->places, 0, names->room * sizeof *names->places);
    return names;
}

void flame_names_free(struct flame_names *names) {
    free(names->places);
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
    struct text text = {0};
    text_format(&text, "[%s]", group);
    uint32_t function = calltree_function(names->tree, text.bytes, group);
    text_free(&text);
    return function;
}

static void resolve(struct flame_names *names, struct place *place) {
    struct symbol_frame frames[INLINED_MAX] = {0};
    size_t count =
        symbols_resolve(names->symbols, place->pid, place->address, false, frames, INLINED_MAX);
    if (!count)
        count = 1;
    if (names->function_count + count > names->function_room) {
        names->function_room = (names->function_count + count) * 2;
        names->functions =
            base_reallocate(names->functions, names->function_room * sizeof *names->functions);
    }
    place->first = (uint32_t)names->function_count;
    place->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        names->functions[names->function_count++] = function_of(names, &frames[i]);
    place->is_main = frames[count - 1].name && stack_text_is_main(&frames[count - 1]);
}

static struct place *find(const struct flame_names *names, pid_t pid, uint64_t address) {
    size_t at = (size_t)((address ^ (uint64_t)pid << 48) * 0x9e3779b97f4a7c15 >> 20);
    for (;; at++) {
        struct place *place = &names->places[at & (names->room - 1)];
        if (!place->pid || (place->pid == pid && place->address == address))
            return place;
    }
}

static void grow(struct flame_names *names) {
    struct place *old = names->places;
    size_t old_room = names->room;
    names->room *= 2;
    names->places = base_allocate(names->room * sizeof *names->places);
    memset(names->places, 0, names->room * sizeof *names->places);
    for (size_t i = 0; i < old_room; i++)
        if (old[i].pid)
            *find(names, old[i].pid, old[i].address) = old[i];
    free(old);
}

static const struct place *place_of(struct flame_names *names, pid_t pid, uint64_t address) {
    struct place *place = find(names, pid, address);
    if (place->pid)
        return place;
    if (names->count + 1 > names->room / 4 * 3) {
        grow(names);
        place = find(names, pid, address);
    }
    names->count++;
    *place = (struct place){.address = address, .pid = pid};
    resolve(names, place);
    return place;
}

void flame_names_add(struct flame_names *names, pid_t pid, const char *process,
                     const uint64_t *addresses, size_t count, bool broken, uint64_t value) {
    uint32_t *path = names->path + PATH_LENGTH;
    bool whole = !broken;
    for (size_t i = 0; i < count; i++) {
        const struct place *place = place_of(names, pid, addresses[i]);
        // Two places are left for the nodes at the outer end.
        if ((size_t)(path - names->path) < place->count + 2u) {
            whole = false;
            break;
        }
        for (uint32_t j = 0; j < place->count; j++)
            *--path = names->functions[place->first + j];
        if (place->is_main && !names->show_below_main) {
            whole = true;
            break;
        }
    }
    if (!count)
        *--path = calltree_function(names->tree, "[kernel]", "");
    else if (!whole)
        *--path = calltree_function(names->tree, "[cut short]", "");
    if (process)
        *--path = calltree_function(names->tree, process, "");
    calltree_add(names->tree, path, (size_t)(names->path + PATH_LENGTH - path), value);
}
