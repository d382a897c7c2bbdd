#include "symbols/units.h"

#include "base/guard.h"
#include "base/vector.h"
#include "symbols/ranges.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* Bounds that no compiler reaches; damaged files do. */
#define MOST_UNIT_RANGES  (8u << 20)
#define MOST_SCOPES       (4u << 20)
#define MOST_SCOPE_RANGES (8u << 20)
#define DEEPEST_TREE      400

struct scope {
    Dwarf_Die die;
    uint32_t parent; /* index, or RANGES_NONE for a function */
    bool inlined;
};

struct unit {
    Dwarf_Die skeleton; /* has the lines */
    Dwarf_Die die;      /* has the tree: the same, or the split unit */
    struct scope *scopes;
    uint32_t scope_count;
    struct ranges ranges; /* address → scope */
    const char *folder;   /* where the compiler ran */
    const char *own_file; /* its main file, if the table has it in one piece; or NULL */
    bool read, has_lines;
};

struct units {
    Dwarf *dwarf;
    uint64_t bias;
    size_t *bytes;
    struct unit *items;
    uint32_t count;
    struct ranges ranges; /* address → unit */
};

/* Section garbage collection leaves functions behind at address 0 (or 1, or -1 for lld). */
static bool is_real(uint64_t low, uint64_t high) {
    return low > 1 && low < high && high < UINT64_MAX - 1;
}

static void index_unit(struct units *units, struct range_list *list, const Dwarf_Die *die) {
    Dwarf_Die copy = *die;
    Dwarf_Addr base, low, high;
    ptrdiff_t next = 0;
    size_t before = list->count;
    while (list->count < MOST_UNIT_RANGES &&
           (next = dwarf_ranges(&copy, next, &base, &low, &high)) > 0)
        if (is_real(low, high))
            range_list_add(list, low, high, units->count, 0);
    if (list->count > before)
        *vector_push(units->items, units->count) = (struct unit){.skeleton = *die};
}

struct units *units_new(Dwarf *dwarf, uint64_t bias, size_t *bytes) {
    struct units *units = calloc(1, sizeof *units);
    if (!units)
        return NULL;
    units->dwarf = dwarf;
    units->bias = bias;
    units->bytes = bytes;
    dwarf_new_oom_handler(dwarf, guard_give_up);
    struct range_list list = {0};
    Dwarf_CU *cu = NULL;
    Dwarf_Die die;
    while (dwarf_get_units(dwarf, cu, &cu, NULL, NULL, &die, NULL) == 0) {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit)
            index_unit(units, &list, &die);
    }
    ranges_build(&units->ranges, &list);
    range_list_free(&list);
    /* libdw keeps about as much for each unit as we do. */
    *bytes += 2 * vector_room(units->count) * sizeof *units->items + ranges_bytes(&units->ranges);
    return units;
}

void units_free(struct units *units) {
    if (!units)
        return;
    for (uint32_t i = 0; i < units->count; i++) {
        free(units->items[i].scopes);
        ranges_free(&units->items[i].ranges);
    }
    free(units->items);
    ranges_free(&units->ranges);
    free(units);
}

/* ------------------------------------------------------------------ the tree of one unit */

struct walk {
    struct unit *unit;
    const char *end; /* of the unit's entries */
    struct range_list list;
};

static bool may_hold_code(int tag) {
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_subprogram:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_lexical_block:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
    case DW_TAG_with_stmt:
        return true;
    default:
        return false;
    }
}

/* The new scope, or the one around it if the entry has no code of its own. */
static uint32_t add_scope(struct walk *walk, const Dwarf_Die *die, bool inlined, uint32_t around,
                          uint32_t depth) {
    struct unit *unit = walk->unit;
    if (unit->scope_count >= MOST_SCOPES)
        return around;
    Dwarf_Die copy = *die;
    Dwarf_Addr base, low, high;
    ptrdiff_t next = 0;
    size_t before = walk->list.count;
    while (walk->list.count < MOST_SCOPE_RANGES &&
           (next = dwarf_ranges(&copy, next, &base, &low, &high)) > 0)
        if (is_real(low, high))
            range_list_add(&walk->list, low, high, unit->scope_count, depth);
    if (walk->list.count == before)
        return around;
    *vector_push(unit->scopes, unit->scope_count) =
        (struct scope){.die = *die, .parent = inlined ? around : RANGES_NONE, .inlined = inlined};
    return unit->scope_count - 1;
}

/*
 * The entry behind `die`, whose children end at `end` if that is known. LLVM writes no
 * DW_AT_sibling: libdw then reads everything below an entry to find the next one, and would do so
 * at every level of the tree. False: there is none, and *end is where this level ends, or NULL.
 */
static bool step_over(const struct walk *walk, Dwarf_Die *die, const char **end) {
    if (*end && *end + 1 < walk->end) {
        *die = (Dwarf_Die){.addr = (void *)(*end + 1), .cu = die->cu};
        *end = die->addr;
        return **end != 0;
    }
    Dwarf_Die next;
    const char *before = die->addr;
    int result = dwarf_siblingof(die, &next);
    *end = result == 1 ? next.addr : NULL;
    *die = next;
    /* A damaged DW_AT_sibling may lead back. */
    return result == 0 && (const char *)die->addr > before;
}

/* Where the children end: at the 0 behind the last. NULL: not known. */
static const char *walk_children(struct walk *walk, Dwarf_Die *parent, uint32_t around,
                                 uint32_t depth) {
    Dwarf_Die die;
    const char *end;
    if (depth > DEEPEST_TREE || dwarf_child(parent, &die) != 0)
        return NULL;
    do {
        int tag = dwarf_tag(&die);
        end = NULL;
        if (may_hold_code(tag)) {
            uint32_t inner = around;
            if (tag == DW_TAG_subprogram)
                inner = add_scope(walk, &die, false, RANGES_NONE, depth);
            else if (tag == DW_TAG_inlined_subroutine)
                inner = add_scope(walk, &die, true, around, depth);
            end = walk_children(walk, &die, inner, depth + 1);
        }
    } while (step_over(walk, &die, &end));
    return end;
}

static void read_folder(struct unit *unit) {
    Dwarf_Attribute found;
    Dwarf_Half version = 0;
    unit->folder = dwarf_formstring(dwarf_attr(&unit->skeleton, DW_AT_comp_dir, &found));
    /* In DWARF 5, LLVM enters the main file as it was named on the command line, folders and all,
     * and perhaps a second time in two pieces; gcc always cuts. */
    const char *producer = dwarf_formstring(dwarf_attr(&unit->die, DW_AT_producer, &found));
    dwarf_cu_info(unit->skeleton.cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
    if (version >= 5 && producer && strstr(producer, "clang"))
        unit->own_file = dwarf_formstring(dwarf_attr(&unit->die, DW_AT_name, &found));
}

/* Where the entries of a unit end, of which die is the first. */
static const char *end_of_unit(Dwarf_Die *die) {
    Dwarf_Off at = dwarf_dieoffset(die), start = at - dwarf_cuoffset(die), next;
    bool known = dwarf_next_unit(dwarf_cu_getdwarf(die->cu), start, &next, NULL, NULL, NULL, NULL,
                                 NULL, NULL, NULL) == 0;
    return known && next > at ? (const char *)die->addr + (next - at) : NULL;
}

static void read_unit(struct units *units, struct unit *unit) {
    unit->read = true;
    unit->die = unit->skeleton;
    Dwarf_Die split = {0};
    uint8_t type;
    if (dwarf_cu_info(unit->skeleton.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) == 0 &&
        type == DW_UT_skeleton && split.addr)
        unit->die = split;
    read_folder(unit);
    struct walk walk = {.unit = unit, .end = end_of_unit(&unit->die)};
    walk_children(&walk, &unit->die, RANGES_NONE, 0);
    ranges_build(&unit->ranges, &walk.list);
    range_list_free(&walk.list);
    *units->bytes +=
        vector_room(unit->scope_count) * sizeof *unit->scopes + ranges_bytes(&unit->ranges);
}

/* libdw keeps them once they are read. */
static void count_lines(struct units *units, struct unit *unit) {
    Dwarf_Lines *lines;
    size_t line_count;
    if (!unit->has_lines && dwarf_getsrclines(&unit->skeleton, &lines, &line_count) == 0)
        *units->bytes += line_count * 48;
    unit->has_lines = true;
}

/* ------------------------------------------------------------------ answers */

static const char *text_of(Dwarf_Die *die, unsigned attribute) {
    Dwarf_Attribute found;
    return dwarf_formstring(dwarf_attr_integrate(die, attribute, &found));
}

/*
 * The name of the unit whose main file declares the function; NULL: a header does, or it is not
 * known. Main files have fixed numbers, so that the table of files, which takes long to read, is
 * not needed: 0 in DWARF 5, and 1 in gcc's tables of any version.
 */
static const char *declared_in(Dwarf_Die *die) {
    Dwarf_Attribute file, text;
    Dwarf_Word number;
    Dwarf_Die unit;
    Dwarf_Half version;
    if (dwarf_formudata(dwarf_attr_integrate(die, DW_AT_decl_file, &file), &number) != 0 ||
        number > 1 || !dwarf_cu_die(file.cu, &unit, &version, NULL, NULL, NULL, NULL, NULL))
        return NULL;
    const char *producer = dwarf_formstring(dwarf_attr(&unit, DW_AT_producer, &text));
    if (number == 0 ? version < 5 : !producer || !strstr(producer, "GNU"))
        return NULL;
    return dwarf_formstring(dwarf_attr(&unit, DW_AT_name, &text));
}

static void name_scope(const struct scope *scope, struct units_frame *frame) {
    Dwarf_Die die = scope->die;
    frame->name = text_of(&die, DW_AT_name);
    frame->linkage = text_of(&die, DW_AT_linkage_name);
    if (!frame->linkage)
        frame->linkage = text_of(&die, DW_AT_MIPS_linkage_name);
    frame->inlined = scope->inlined;
    Dwarf_Attribute found;
    Dwarf_Word line;
    if (dwarf_formudata(dwarf_attr_integrate(&die, DW_AT_decl_line, &found), &line) == 0)
        frame->declared = (uint32_t)line;
    frame->declared_in = declared_in(&die);
}

struct place {
    const char *path, *file;
    uint32_t line;
};

/* The length of folder if path lies in it, with the slash behind it; or 0. */
static size_t length_in(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return length && !strncmp(path, folder, length) && path[length] == '/' ? length + 1 : 0;
}

/*
 * libdw gives paths that it has joined from a folder and a file. Valgrind shows the file alone,
 * and compilers differ in where they cut ("src/" and "x.c", or nothing and "src/x.c"): the longest
 * folder of the table that fits is what was joined.
 */
static const char *file_in(const char *path, Dwarf_Files *files, const struct unit *unit) {
    const char *const *folders;
    size_t count, longest = 0;
    if (dwarf_getsrcdirs(files, &folders, &count) != 0)
        return path;
    size_t in_unit = unit->folder ? length_in(path, unit->folder) : 0;
    if (unit->own_file && !strcmp(path + in_unit, unit->own_file))
        return path + in_unit;
    for (size_t i = 0; i < count; i++) {
        if (!folders[i])
            continue;
        size_t length = length_in(path, folders[i]);
        if (in_unit && folders[i][0] != '/') {
            size_t below = length_in(path + in_unit, folders[i]);
            length = below ? in_unit + below : length;
        }
        if (length > longest)
            longest = length;
    }
    return path + (longest > in_unit ? longest : in_unit);
}

/* Where the call that was inlined as scope stands in the source. */
static struct place place_of_call(const struct unit *unit, const struct scope *scope) {
    Dwarf_Die die = scope->die, unit_die = unit->die;
    Dwarf_Attribute found;
    Dwarf_Word number;
    Dwarf_Files *files;
    size_t count;
    struct place place = {0};
    if (dwarf_formudata(dwarf_attr(&die, DW_AT_call_file, &found), &number) == 0 &&
        dwarf_getsrcfiles(&unit_die, &files, &count) == 0 && number < count)
        place.path = dwarf_filesrc(files, number, NULL, NULL);
    if (place.path)
        place.file = file_in(place.path, files, unit);
    if (dwarf_formudata(dwarf_attr(&die, DW_AT_call_line, &found), &number) == 0)
        place.line = (uint32_t)number;
    return place;
}

static struct place place_of_address(struct unit *unit, uint64_t address) {
    struct place place = {0};
    Dwarf_Line *row = dwarf_getsrc_die(&unit->skeleton, address);
    Dwarf_Files *files;
    size_t count;
    int number;
    if (!row || dwarf_lineno(row, &number) != 0)
        return place;
    place.path = dwarf_linesrc(row, NULL, NULL);
    place.line = number > 0 ? (uint32_t)number : 0;
    if (place.path && dwarf_getsrcfiles(&unit->skeleton, &files, &count) == 0)
        place.file = file_in(place.path, files, unit);
    return place;
}

static struct units_frame frame_at(const struct unit *unit, const struct place *place) {
    return (struct units_frame){.path = place->path,
                                .file = place->file ? place->file : place->path,
                                .folder = unit->folder,
                                .line = place->line};
}

static uint64_t lowest_address(const struct scope *scope, uint64_t bias) {
    Dwarf_Die die = scope->die;
    Dwarf_Addr low;
    return dwarf_lowpc(&die, &low) == 0 ? low + bias : 0;
}

size_t units_find(struct units *units, uint64_t vaddr, struct units_request request,
                  struct units_frame *frames, size_t max) {
    uint64_t address = vaddr - units->bias;
    uint32_t index = ranges_find(&units->ranges, address);
    if (index == RANGES_NONE || !max)
        return 0;
    struct unit *unit = &units->items[index];
    if (!unit->read)
        read_unit(units, unit);

    struct place place = {0};
    if (!request.no_lines) {
        count_lines(units, unit);
        place = place_of_address(unit, address);
    }
    uint32_t at = ranges_find(&unit->ranges, address);
    size_t count = 0;
    for (; at != RANGES_NONE && unit->scopes[at].inlined; at = unit->scopes[at].parent) {
        if (request.no_inlined)
            continue;
        if (count == max)
            return count;
        frames[count] = frame_at(unit, &place);
        name_scope(&unit->scopes[at], &frames[count]);
        count++;
        if (!request.no_lines)
            place = place_of_call(unit, &unit->scopes[at]);
    }
    if (count == max)
        return count;
    frames[count] = frame_at(unit, &place);
    if (at != RANGES_NONE) {
        name_scope(&unit->scopes[at], &frames[count]);
        frames[count].low = lowest_address(&unit->scopes[at], units->bias);
    }
    return count + 1;
}

const char *units_declaring_file(struct units *units, uint64_t vaddr, size_t level) {
    uint64_t address = vaddr - units->bias;
    uint32_t index = ranges_find(&units->ranges, address);
    struct unit *unit = index == RANGES_NONE ? NULL : &units->items[index];
    if (!unit || !unit->read)
        return NULL;
    uint32_t at = ranges_find(&unit->ranges, address);
    for (; at != RANGES_NONE && level; level--)
        at = unit->scopes[at].parent;
    if (at == RANGES_NONE)
        return NULL;
    Dwarf_Die die = unit->scopes[at].die;
    return dwarf_decl_file(&die);
}
