#include "symbols/variables.h"

#include <dwarf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32, DIMENSIONS = 8 };

/* ------------------------------------------------------------------ types */

/* A type may stand in a unit of its own (-fdebug-types-section); here is its signature then. */
static bool type_of(Dwarf_Die *die, Dwarf_Die *type) {
    Dwarf_Attribute attribute;
    Dwarf_Die found;
    if (!dwarf_attr_integrate(die, DW_AT_type, &attribute) ||
        !dwarf_formref_die(&attribute, &found) || dwarf_peel_type(&found, type) != 0)
        return false;
    return !dwarf_attr(type, DW_AT_signature, &attribute) || dwarf_formref_die(&attribute, type);
}

static void add(struct variable *variable, const char *format, ...) {
    size_t used = strlen(variable->path);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(variable->path + used, sizeof variable->path - used, format, arguments);
    va_end(arguments);
    variable->is_whole = false;
}

static Dwarf_Word count_of(Dwarf_Die *range) {
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    if (dwarf_formudata(dwarf_attr_integrate(range, DW_AT_count, &attribute), &number) == 0)
        return number;
    if (dwarf_formudata(dwarf_attr_integrate(range, DW_AT_upper_bound, &attribute), &number) == 0)
        return number + 1;
    return 0;
}

/* How many dimensions an array has, and the elements of each. */
static int dimensions_of(Dwarf_Die *array, Dwarf_Word counts[DIMENSIONS]) {
    Dwarf_Die child;
    int dimensions = 0;
    if (dwarf_child(array, &child) != 0)
        return 0;
    do {
        if (dwarf_tag(&child) == DW_TAG_subrange_type && dimensions < DIMENSIONS)
            counts[dimensions++] = count_of(&child);
    } while (dwarf_siblingof(&child, &child) == 0);
    return dimensions;
}

/* libdw does not know the size of an array whose elements are in another unit. */
static bool size_of(Dwarf_Die *type, int depth, Dwarf_Word *size) {
    Dwarf_Die element;
    Dwarf_Word counts[DIMENSIONS];
    if (dwarf_aggregate_size(type, size) == 0)
        return true;
    if (depth > DEEPEST || dwarf_tag(type) != DW_TAG_array_type || !type_of(type, &element) ||
        !size_of(&element, depth + 1, size))
        return false;
    int dimensions = dimensions_of(type, counts);
    for (int i = 0; i < dimensions; i++)
        *size *= counts[i];
    return true;
}

/* The element of an array at the offset, which becomes the offset in the element. */
static bool enter_array(struct variable *variable, Dwarf_Die *type) {
    Dwarf_Die element;
    Dwarf_Word counts[DIMENSIONS], size;
    if (!type_of(type, &element) || !size_of(&element, 0, &size) || !size)
        return false;
    int dimensions = dimensions_of(type, counts);
    uint64_t index = variable->offset / size;
    for (int i = 0; i < dimensions; i++) {
        uint64_t inner = 1;
        for (int j = i + 1; j < dimensions; j++)
            inner *= counts[j] ? counts[j] : 1;
        add(variable, "[%lu]", index / inner);
        index %= inner;
    }
    variable->offset %= size;
    *type = element;
    return dimensions > 0;
}

static bool enter_member(struct variable *variable, Dwarf_Die *type) {
    Dwarf_Die child, member_type;
    if (dwarf_child(type, &child) != 0)
        return false;
    do {
        Dwarf_Attribute attribute;
        Dwarf_Word start = 0, size;
        if (dwarf_tag(&child) != DW_TAG_member || !dwarf_diename(&child) ||
            !type_of(&child, &member_type) || !size_of(&member_type, 0, &size))
            continue;
        if (dwarf_attr_integrate(&child, DW_AT_data_member_location, &attribute) &&
            dwarf_formudata(&attribute, &start) != 0)
            continue;
        if (variable->offset - start >= size)
            continue;
        add(variable, ".%s", dwarf_diename(&child));
        variable->offset -= start;
        *type = member_type;
        return true;
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
}

static void enter_parts(struct variable *variable, Dwarf_Die type) {
    for (int depth = 0; depth < DEEPEST; depth++) {
        int tag = dwarf_tag(&type);
        bool entered =
            tag == DW_TAG_array_type ? enter_array(variable, &type)
            : tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type
                ? enter_member(variable, &type)
                : false;
        if (!entered)
            return;
    }
}

/* Whether the variable, which begins at start, contains the address; then it is described. */
static bool describe(Dwarf_Die *die, uint64_t start, uint64_t address, struct variable *variable) {
    Dwarf_Die type;
    Dwarf_Word size;
    const char *name = dwarf_diename(die);
    if (!name || !type_of(die, &type) || !size_of(&type, 0, &size) || address - start >= size)
        return false;
    *variable = (struct variable){.offset = address - start, .is_whole = true};
    snprintf(variable->path, sizeof variable->path, "%s", name);
    dwarf_decl_line(die, &variable->line);
    variable->file = dwarf_decl_file(die);
    const char *slash = variable->file ? strrchr(variable->file, '/') : NULL;
    if (slash)
        variable->file = slash + 1;
    enter_parts(variable, type);
    return true;
}

/* Whether the variable's place is told by just this operation; *number is its operand. */
static bool is_at(Dwarf_Die *die, uint64_t pc, unsigned operation, uint64_t *number) {
    Dwarf_Attribute attribute;
    Dwarf_Op *code;
    size_t length;
    if (!dwarf_attr(die, DW_AT_location, &attribute) ||
        dwarf_getlocation_addr(&attribute, pc, &code, &length, 1) != 1 || length != 1 ||
        code[0].atom != operation)
        return false;
    *number = code[0].number;
    return true;
}

/* ------------------------------------------------------------------ globals */

static bool find_in(Dwarf_Die *parent, uint64_t address, int depth, struct variable *variable) {
    Dwarf_Die die;
    if (depth > DEEPEST || dwarf_child(parent, &die) != 0)
        return false;
    do {
        uint64_t start;
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_namespace && find_in(&die, address, depth + 1, variable))
            return true;
        if (tag == DW_TAG_variable && is_at(&die, 0, DW_OP_addr, &start) &&
            describe(&die, start, address, variable))
            return true;
    } while (dwarf_siblingof(&die, &die) == 0);
    return false;
}

bool variables_find_global(Dwarf *dwarf, uint64_t bias, uint64_t vaddr, struct variable *variable) {
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0)
        if (dwarf_tag(&die) == DW_TAG_compile_unit && find_in(&die, vaddr - bias, 0, variable))
            return true;
    return false;
}

/* ------------------------------------------------------------------ locals */

/* What offsets of locals count from: the end of the frame, or rbp, which is pushed first. */
static bool frame_base(Dwarf_Die *function, uint64_t pc, uint64_t frame_end, uint64_t *base) {
    enum { RBP = 6, PUSHED = 16 };
    Dwarf_Attribute attribute;
    Dwarf_Op *code;
    size_t length;
    if (!dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) ||
        dwarf_getlocation_addr(&attribute, pc, &code, &length, 1) != 1 || length != 1)
        return false;
    switch (code[0].atom) {
    case DW_OP_call_frame_cfa:
        *base = frame_end;
        return true;
    case DW_OP_reg0 + RBP:
        *base = frame_end - PUSHED;
        return true;
    case DW_OP_breg0 + RBP:
        *base = frame_end - PUSHED + code[0].number;
        return true;
    default:
        return false;
    }
}

static bool find_local(Dwarf_Die *scope, uint64_t pc, uint64_t base, uint64_t address,
                       struct variable *variable) {
    Dwarf_Die die;
    if (dwarf_child(scope, &die) != 0)
        return false;
    do {
        uint64_t offset;
        int tag = dwarf_tag(&die);
        if ((tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) &&
            is_at(&die, pc, DW_OP_fbreg, &offset) &&
            describe(&die, base + offset, address, variable))
            return true;
    } while (dwarf_siblingof(&die, &die) == 0);
    return false;
}

/* Not every compiler writes a table of all units' addresses. */
static bool unit_at(Dwarf *dwarf, uint64_t pc, Dwarf_Die *die) {
    Dwarf_CU *unit = NULL;
    if (dwarf_addrdie(dwarf, pc, die))
        return true;
    while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, die, NULL) == 0)
        if (dwarf_haspc(die, pc) > 0)
            return true;
    return false;
}

bool variables_find_local(Dwarf *dwarf, uint64_t bias, uint64_t vaddr, uint64_t frame_end,
                          uint64_t address, struct variable *variable) {
    Dwarf_Die unit, *scopes = NULL;
    uint64_t pc = vaddr - bias, base;
    bool found = false;
    if (!unit_at(dwarf, pc, &unit))
        return false;
    int count = dwarf_getscopes(&unit, pc, &scopes), function = 0;
    while (function < count && dwarf_tag(&scopes[function]) != DW_TAG_subprogram)
        function++;
    if (function < count && frame_base(&scopes[function], pc, frame_end, &base))
        for (int i = 0; i <= function && !found; i++)
            found = find_local(&scopes[i], pc, base, address, variable);
    free(scopes);
    return found;
}
