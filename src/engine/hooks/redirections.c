// Functions that the target itself replaces or wraps. A module that has such functions may come
// before or after those that it means, so both are remembered.
#include <stdlib.h>
#include <string.h>

#include "base/glob.h"
#include "base/hash.h"
#include "base/redirection.h"
#include "engine/cache/block.h"
#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/hooks/module.h"

// A function that stands for others.
struct replacer {
    struct redirection names;
    uint64_t to;
    struct replacer *next;
};

struct mapped_module {
    uint64_t start, end, offset;
    struct mapped_module *next;
    char path[];
};

enum { BUCKETS = 64 };

static struct redirected_function *redirected[BUCKETS];
static struct replacer *replacers;
static struct mapped_module *modules;
static const char *soname; // of the module whose symbols are visited

static struct redirected_function **bucket_of(uint64_t pc) {
    return &redirected[hash_bucket(pc, 6)];
}

const struct redirected_function *redirection_find(uint64_t pc) {
    const struct redirected_function *it = __atomic_load_n(bucket_of(pc), __ATOMIC_ACQUIRE);
    while (it && it->pc != pc)
        it = it->next;
    return it;
}

static void *allocate(size_t size) {
    void *memory = calloc(1, size);
    if (!memory)
        fatal("out of memory for functions that are replaced");
    return memory;
}

static void collect_replacer(struct module *module, const char *name, const Elf64_Sym *symbol) {
    struct redirection names;
    uint64_t to = module->bias + symbol->st_value;
    if (!module_has(module, symbol) || !redirection_parse(name, &names))
        return;
    for (const struct replacer *it = replacers; it; it = it->next)
        if (it->to == to && strcmp(it->names.function, names.function) == 0)
            return; // seen in the module's other table
    struct replacer *replacer = allocate(sizeof *replacer);
    *replacer = (struct replacer){names, to, replacers};
    replacers = replacer;
}

static void redirect(uint64_t pc, const struct replacer *replacer) {
    if (pc == replacer->to || redirection_find(pc))
        return;
    struct redirected_function *function = allocate(sizeof *function);
    *function =
        (struct redirected_function){pc, replacer->to, replacer->names.wraps, *bucket_of(pc)};
    __atomic_store_n(bucket_of(pc), function, __ATOMIC_RELEASE);
    cache_invalidate(pc, pc + 1);
}

static void consider(struct module *module, const char *name, const Elf64_Sym *symbol) {
    // The resolver of an indirect function is not the function.
    if (!module_has(module, symbol) || ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
        return;
    for (const struct replacer *replacer = replacers; replacer; replacer = replacer->next)
        if (glob_match(replacer->names.soname, soname) &&
            glob_match(replacer->names.function, name))
            redirect(module->bias + symbol->st_value, replacer);
}

static void consider_module(struct module *module) {
    const char *own = module_soname(module);
    soname = own ? own : "NONE";
    for (const struct replacer *replacer = replacers; replacer; replacer = replacer->next) {
        if (glob_match(replacer->names.soname, soname)) {
            module_visit_symbols(module, consider);
            return;
        }
    }
}

static void consider_all_modules(void) {
    for (const struct mapped_module *it = modules; it; it = it->next) {
        struct module module;
        if (module_open(&module, it->start, it->end, it->offset, it->path)) {
            consider_module(&module);
            module_close(&module);
        }
    }
}

void redirections_of_module(struct module *module, const char *path) {
    size_t size = strlen(path) + 1;
    struct mapped_module *mapped = allocate(sizeof *mapped + size);
    *mapped = (struct mapped_module){module->start, module->end, module->offset, modules};
    memcpy(mapped->path, path, size);
    modules = mapped;
    const struct replacer *before = replacers;
    if (module_mentions(module, "_vg")) // of _vgr and _vgw
        module_visit_symbols(module, collect_replacer);
    if (replacers != before)
        consider_all_modules();
    else if (replacers)
        consider_module(module);
}

void redirections_gone(uint64_t start, uint64_t end) {
    for (struct replacer **at = &replacers; *at;) {
        struct replacer *it = *at;
        if (it->to >= start && it->to < end) {
            *at = it->next;
            free(it);
        } else {
            at = &it->next;
        }
    }
    for (struct mapped_module **at = &modules; *at;) {
        struct mapped_module *it = *at;
        if (it->start >= start && it->end <= end) {
            *at = it->next;
            free(it);
        } else {
            at = &it->next;
        }
    }
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct redirected_function **at = &redirected[i]; *at;) {
            struct redirected_function *it = *at;
            bool is_gone = (it->pc >= start && it->pc < end) || (it->to >= start && it->to < end);
            if (is_gone)
                cache_invalidate(it->pc, it->pc + 1);
            // Not freed: another thread may be looking at it.
            if (is_gone)
                *at = it->next;
            else
                at = &it->next;
        }
    }
}
