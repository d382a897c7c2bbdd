// A module whose code has been mapped, while its symbols are read: which functions the tool
// replaces, which allocators it contains, what --require-text-symbol asks for.
//
// A module is open only within functions_of_module, on the thread that has mapped it, under the
// cache lock. It is closed before target code runs: the file may become shorter (load/file.h).
#ifndef QUERN_ENGINE_HOOKS_MODULE_H
#define QUERN_ENGINE_HOOKS_MODULE_H

#include "base/allocator_family.h"
#include "engine/load/file.h"

enum { MODULE_FAMILIES = 4 }; // at most

// A module's file, and its code in the file's own numbering.
struct module {
    struct elf_view file;
    uint64_t first, last, bias;
    uint64_t start, end, offset; // as it was mapped
    bool is_program;
    bool is_stripped; // of all symbols but those that other modules need
    bool is_whole; // a statically linked program: hidden functions of its libraries are local in it

    // Its allocators (allocators.c). The standard functions are malloc, calloc, realloc and free:
    // it exports them, or has them at all.
    bool exports_standard[4], has_standard[4];
    uint64_t malloc; // where malloc is; 0: nowhere
    struct allocator_found families[MODULE_FAMILIES];
    unsigned family_count, family_hooks; // hooks: functions of families that the tool replaces
};

// Ends the process if the module lacks a function that --require-text-symbol names (required.c).
void required_check(struct module *, const char *path);

// False: it is no file with symbols. module_close undoes it.
bool module_open(struct module *, uint64_t start, uint64_t end, uint64_t offset, const char *path);
void module_close(struct module *);

// Functions that the file defines, those of its dynamic table and those of the full one, or, in a
// stripped Go program, of Go's own.
typedef void visit_symbol(struct module *, const char *name, const Elf64_Sym *);
void module_visit_symbols(struct module *, visit_symbol *);
// Whether one of its symbols may have these characters in its name: quicker than a visit.
bool module_mentions(const struct module *, const char *text);
// Its DT_SONAME, or NULL.
const char *module_soname(const struct module *);

// Finds the allocators of a module (allocators.c).
void module_find_allocators(struct module *);
// Whether it is an allocator that programs call by the standard names.
bool module_is_allocator(const struct module *);
// Whether all functions of that allocator are known. A program without full symbols may have
// others, which its own code calls.
bool module_shows_allocator(const struct module *);
// Whether its local symbols count: those of an allocator that is linked in may be.
static inline bool module_has_local(const struct module *module) {
    return module->is_whole || module->family_count;
}
// Tells the user about its allocators, after functions of the module were hooked. Nothing of an
// unknown one if the user has chosen which to replace.
void module_announce_allocators(const struct module *, const char *path, bool is_chosen);

// Whether the code that was mapped has the symbol.
static inline bool module_has(const struct module *module, const Elf64_Sym *symbol) {
    return symbol->st_value >= module->first && symbol->st_value < module->last;
}

#endif
