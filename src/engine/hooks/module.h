// The symbols of a module whose code has been mapped.
#ifndef QUERN_ENGINE_HOOKS_MODULE_H
#define QUERN_ENGINE_HOOKS_MODULE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/load/file.h"

// A module's file, and its code in the file's own numbering.
struct module {
    struct file_view file;
    uint64_t first, last, bias;
    uint64_t start, end, offset; // as it was mapped
    bool has[4];                 // the functions that make an allocator
    bool is_whole; // a statically linked program: hidden functions of its libraries are local in it
};

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

// Whether the code that was mapped has the symbol.
static inline bool module_has(const struct module *module, const Elf64_Sym *symbol) {
    return symbol->st_value >= module->first && symbol->st_value < module->last;
}

#endif
