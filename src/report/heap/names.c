#include "report/heap/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vector.h"

#define INLINED_MAX 32

static const char *const standard_fns[] = {
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "aligned_alloc",
    "memalign",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "operator new(unsigned long)",
    "operator new[](unsigned long)",
    "operator new(unsigned long, std::nothrow_t const&)",
    "operator new[](unsigned long, std::nothrow_t const&)",
    "operator new(unsigned long, std::align_val_t)",
    "operator new[](unsigned long, std::align_val_t)",
    "operator new(unsigned long, std::align_val_t, std::nothrow_t const&)",
    "operator new[](unsigned long, std::align_val_t, std::nothrow_t const&)",
};

struct heap_names {
    struct symbols *symbols;
    pid_t pid;
    struct heap_names_options options;
    struct map_integers addresses; // return addresses
    struct heap_place **places;    // by number of the address
    size_t place_count;
};

static bool is_one_of(const char *name, const char *const *names, size_t count) {
    for (size_t i = 0; name && i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool heap_names_allocates(const char *name) {
    return is_one_of(name, standard_fns, sizeof standard_fns / sizeof *standard_fns);
}

// Functions of include/quern/heap.h, which are the program's own code and mostly inlined.
static bool is_of_heap_header(const char *name) {
    static const char *const beginnings[] = {"quern_heap_", "quern_arena_", "quern_pool_",
                                             "quern_request"};
    for (size_t i = 0; name && i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static bool is_alloc_fn(const struct heap_names *names, const char *name) {
    return is_of_heap_header(name) || heap_names_allocates(name) ||
           is_one_of(name, names->options.alloc_fns, names->options.alloc_fn_count);
}

static char *text_of(const struct heap_names *names, const struct symbol_frame *frame) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return base_copy("???");
    stack_text_frame(out, frame, &names->options.text);
    fclose(out);
    return text;
}

static struct heap_place *resolve(struct heap_names *names, uint64_t address) {
    struct symbol_frame frames[INLINED_MAX];
    struct heap_place *place = base_allocate(sizeof *place);
    size_t count = symbols_resolve(names->symbols, names->pid, address, true, frames, INLINED_MAX);
    size_t inner = 0;
    while (inner + 1 < count && is_of_heap_header(frames[inner].name))
        inner++;
    count -= inner;
    memmove(frames, frames + inner, count * sizeof *frames);
    *place = (struct heap_place){.address = address - 1, .count = count ? count : 1};
    place->texts = base_allocate(place->count * sizeof *place->texts);
    place->frames = base_allocate(place->count * sizeof *place->frames);
    if (!count) {
        place->texts[0] = text_of(names, NULL);
        place->frames[0] = (struct symbol_frame){0};
    }
    place->is_alloc = count > 0;
    for (size_t i = 0; i < count; i++) {
        place->texts[i] = text_of(names, &frames[i]);
        place->frames[i] = frames[i];
        if (place->is_alloc && !is_alloc_fn(names, frames[i].name)) {
            place->is_alloc = false;
            place->name = frames[i].name;
        }
    }
    place->is_main = count && stack_text_is_main(&frames[count - 1]);
    return place;
}

struct heap_names *heap_names_new(struct symbols *symbols, pid_t pid,
                                  const struct heap_names_options *options) {
    struct heap_names *names = base_allocate(sizeof *names);
    *names = (struct heap_names){.symbols = symbols, .pid = pid, .options = *options};
    return names;
}

void heap_names_free(struct heap_names *names) {
    for (size_t i = 0; i < names->place_count; i++) {
        struct heap_place *place = names->places[i];
        for (size_t j = 0; j < place->count; j++)
            free(place->texts[j]);
        free(place->texts);
        free(place->frames);
        free(place);
    }
    free(names->places);
    map_integers_free(&names->addresses);
    free(names);
}

const struct heap_place *heap_names_place(struct heap_names *names, uint64_t return_address) {
    bool is_new;
    uint32_t number = map_integers_add(&names->addresses, return_address, &is_new);
    if (is_new) {
        struct heap_place *place = resolve(names, return_address);
        *vector_push(names->places, names->place_count) = place;
    }
    return names->places[number];
}

size_t heap_names_trim(struct heap_names *names, const struct stacks_entry *stack, size_t *first) {
    size_t top = 0;
    while (top < stack->count && heap_names_place(names, stack->pcs[top])->is_alloc)
        top++;
    size_t end = stack->count;
    if (!names->options.text.show_below_main) {
        for (size_t i = 0; i < stack->count; i++) {
            if (heap_names_place(names, stack->pcs[i])->is_main) {
                // The first function of the program may itself be an alloc function.
                end = i < top ? top + 1 : i + 1;
                break;
            }
        }
    }
    if (end > stack->count)
        end = stack->count;
    *first = top;
    size_t count = end - top;
    return count < names->options.depth ? count : names->options.depth;
}

bool heap_names_ignored(struct heap_names *names, const struct stacks_entry *stack) {
    size_t i = 0;
    while (i < stack->count && !heap_names_place(names, stack->pcs[i])->name)
        i++;
    return i < stack->count && is_one_of(heap_names_place(names, stack->pcs[i])->name,
                                         names->options.ignore_fns, names->options.ignore_fn_count);
}
