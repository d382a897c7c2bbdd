// The allocators of a module: those that programs bring along are recognised by the names of their
// functions (base/allocator_family.h).
#include <string.h>

#include "engine/hooks/hooks.h"
#include "engine/hooks/module.h"
#include "engine/log.h"

static void add_family(struct module *module, const struct allocator_found *found) {
    for (unsigned i = 0; i < module->family_count; i++)
        if (strcmp(module->families[i].prefix, found->prefix) == 0)
            return; // seen in the module's other table, or by another mark
    if (module->family_count < MODULE_FAMILIES)
        module->families[module->family_count++] = *found;
}

static void look_for_allocator(struct module *module, const char *name, const Elf64_Sym *symbol) {
    static const char functions[][8] = {"malloc", "calloc", "realloc", "free"};
    struct allocator_found found;
    if (!module_has(module, symbol))
        return;
    for (unsigned i = 0; i < 4; i++) {
        if (strcmp(name, functions[i]) != 0)
            continue;
        module->has_standard[i] = true;
        if (i == 0)
            module->malloc = module->bias + symbol->st_value;
        module->exports_standard[i] |= ELF64_ST_BIND(symbol->st_info) != STB_LOCAL;
    }
    if (allocator_recognise(name, strlen(name), &found))
        add_family(module, &found);
}

void module_find_allocators(struct module *module) {
    module_visit_symbols(module, look_for_allocator);
}

bool module_is_allocator(const struct module *module) {
    const bool *has = module_has_local(module) ? module->has_standard : module->exports_standard;
    return has[0] && has[1] && has[2] && has[3];
}

bool module_shows_allocator(const struct module *module) {
    return module->family_count ||
           (module->is_program && (module->is_whole || !module->is_stripped));
}

// ---- words for the user ------------------------------------------------------------------------

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    log_notice_list(0, format, arguments);
    va_end(arguments);
}

static bool program_is_left_alone;

bool tool_allocator_is_left_alone(void) {
    return program_is_left_alone;
}

static void announce(const struct module *module, const char *file,
                     const struct allocator_found *found, bool is_replaced) {
    const char *title = found ? found->family->title : "an unknown one";
    const char *prefix = found ? found->prefix : "";
    if (is_replaced)
        say("Allocator: %s in %s (%smalloc, ...) is replaced: its blocks are tracked", title, file,
            prefix);
    else
        say("Allocator: %s in %s (%smalloc, ...) is left alone%s: its blocks are not tracked. "
            "--soname-synonyms=somalloc=%s replaces it",
            title, file, prefix, module->is_program && module->is_stripped ? " (stripped)" : "",
            module->is_program ? "NONE" : file);
}

void module_announce_allocators(const struct module *module, const char *path, bool is_chosen) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    bool has_standard = module_is_allocator(module) && strncmp(file, "ld-", 3) != 0;
    const struct hooked_function *malloc = has_standard ? function_find(module->malloc) : NULL;
    for (unsigned i = 0; i < module->family_count; i++)
        announce(module, file, &module->families[i], module->family_hooks);
    if (!has_standard || (malloc && malloc->kind == TOOL_REPLACE))
        return;
    program_is_left_alone |= module->is_program;
    if (!module->family_count && !is_chosen)
        announce(module, file, NULL, false);
}
