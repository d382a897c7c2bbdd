// Functions that the engine or the tool does something about, by address and by symbol.
#include <elf.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "engine/cache/block.h"
#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/hooks/module.h"
#include "engine/layout.h"
#include "engine/log.h"
#include "engine/memory/memory.h"
#include "engine/process.h"
#include "engine/task.h"
#include "wire/wire_target.h"

enum { BUCKETS = 1024 };

static struct hooked_function *functions[BUCKETS];

static struct hooked_function **bucket_of(uint64_t pc) {
    return &functions[hash_bucket(pc, 10)];
}

void function_hook(uint64_t pc, uint64_t shown, enum tool_function_kind kind,
                   tool_function *function, void *argument) {
    struct hooked_function *hooked = malloc(sizeof *hooked);
    if (!hooked)
        fatal("out of memory for function hooks");
    *hooked = (struct hooked_function){pc, shown, kind, function, argument, *bucket_of(pc)};
    __atomic_store_n(bucket_of(pc), hooked, __ATOMIC_RELEASE);
}

const struct hooked_function *function_find(uint64_t pc) {
    const struct hooked_function *hooked = __atomic_load_n(bucket_of(pc), __ATOMIC_ACQUIRE);
    while (hooked && hooked->pc != pc)
        hooked = hooked->next;
    return hooked;
}

void functions_gone(uint64_t start, uint64_t end) {
    cache_lock();
    redirections_gone(start, end);
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct hooked_function **at = &functions[i]; *at;) {
            // Not freed: another thread may be looking at it.
            if ((*at)->pc >= start && (*at)->pc < end)
                *at = (*at)->next;
            else
                at = &(*at)->next;
        }
    }
    cache_unlock();
}

// ---- symbols -----------------------------------------------------------------------------------

static void call_hook(void *hook) {
    ((void (*)(void))hook)();
}

static bool is_in(const char *globs, const char *file, const struct module *module) {
    char glob[256];
    while (*globs) {
        size_t size = strcspn(globs, "|");
        snprintf(glob, sizeof glob, "%.*s", (int)size, globs);
        bool is_allocator = module_is_allocator(module);
        if (strcmp(glob, TOOL_PROGRAM) == 0       ? module->is_program && is_allocator
            : strcmp(glob, TOOL_ANY_PROGRAM) == 0 ? module->is_program
            : strcmp(glob, TOOL_ALLOCATOR) == 0   ? is_allocator && module_shows_allocator(module)
                                                  : fnmatch(glob, file, 0) == 0)
            return true;
        globs += size + (globs[size] == '|');
    }
    return false;
}

// ---- indirect functions ------------------------------------------------------------------------
//
// The symbol names a resolver, which the loader calls once to be told where the function is. It is
// answered with a place of the engine's own, whose entry is hooked; the code there is never run.

enum { PLACES_SIZE = 64 * 1024, PLACE_SIZE = 16 };

static uint64_t next_place, places_end;
static uint64_t exit_functions[TOOL_EXIT_FUNCTIONS]; // as the tool has them; 0: not there

void functions_init(void) {
    if (!tool->symbols)
        return;
    uint64_t start = space_pick(&target_space, PLACES_SIZE, 4096, LOW_START, LOW_END, true);
    struct space_attributes attributes = {.prot = PROT_READ | PROT_EXEC, .tag = SPACE_PLAIN};
    void *memory = mmap((void *)start, PLACES_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != (void *)start ||
        space_map(&target_space, start, start + PLACES_SIZE, &attributes))
        fatal("no room for the entries of replaced functions");
    memset(memory, 0xf4, PLACES_SIZE); // hlt
    mprotect(memory, PLACES_SIZE, PROT_READ);
    next_place = start;
    places_end = start + PLACES_SIZE;
}

static uint64_t place_for(tool_function *function, void *argument) {
    uint64_t place = next_place;
    function_hook(place, place, TOOL_REPLACE, function, argument);
    next_place += PLACE_SIZE;
    return place;
}

// Not before _exit, as in a child that must not write what its parent has in its buffers: functions
// that write them may not run then.
static bool exit_called;

static void do_nothing(void *unused) {}

unsigned functions_at_exit(uint64_t *returns, tool_function *after, void *argument) {
    unsigned count = 0;
    cache_lock();
    if (next_place + 2 * PLACE_SIZE <= places_end) {
        uint64_t between = 0;
        for (unsigned i = 0; i < TOOL_EXIT_FUNCTIONS; i++) {
            if (!exit_functions[i] || (tool->exit_functions[i].writes && !exit_called))
                continue;
            if (count && !between)
                between = place_for(do_nothing, NULL);
            if (count)
                returns[count++] = between;
            returns[count++] = exit_functions[i];
        }
        if (count)
            returns[count++] = place_for(after, argument);
    }
    cache_unlock();
    return count;
}

static void note_exit(void *unused) {
    exit_called = true;
}

static void consider_exit_function(const char *name, uint64_t pc) {
    const struct tool_exit_function *functions = tool->exit_functions;
    if (functions && strcmp(name, "exit") == 0 && !function_find(pc))
        function_hook(pc, pc, TOOL_WATCH, note_exit, NULL);
    for (unsigned i = 0; functions && functions[i].name; i++) {
        const char *option = tool_option(functions[i].option);
        if (strcmp(functions[i].name, name) == 0 && !(option && strcmp(option, "no") == 0))
            exit_functions[i] = pc;
    }
}

static void resolve(void *place) {
    self->gpr[RAX] = (uint64_t)place;
}

static void trace_hook(const struct tool_symbol *symbol, uint64_t pc) {
    static const char *const kinds[] = {"replaced", "watched", "located"};
    if (wire_option_yes("trace-redir"))
        log_debug("redir: 0x%lX (%s) %s", pc, symbol->name, kinds[symbol->kind]);
}

static void hook_symbol(const struct tool_symbol *symbol, uint64_t pc, bool is_indirect) {
    trace_hook(symbol, pc);
    if (symbol->kind == TOOL_LOCATE) {
        *symbol->located = pc;
    } else if (function_find(pc)) {
        return; // by another name
    } else if (!is_indirect) {
        function_hook(pc, pc, symbol->kind, call_hook, (void *)symbol->hook);
    } else if (symbol->kind == TOOL_REPLACE && next_place < places_end) {
        function_hook(next_place, pc, TOOL_REPLACE, call_hook, (void *)symbol->hook);
        function_hook(pc, pc, TOOL_REPLACE, resolve, (void *)next_place);
        next_place += PLACE_SIZE;
    }
}

// The tool's symbols that may be in the module at hand, by hash of the name. Under the cache lock.
enum { NAMES = 512, WANTED = 1024 };

static struct wanted {
    const struct tool_symbol *symbol;
    struct wanted *next;
} wanted[WANTED], *names[NAMES];

static struct wanted **wanted_by(const char *name) {
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return &names[(hash ^ hash >> 16) % NAMES];
}

static bool choose_wanted(const char *file, const struct module *module) {
    const char *globs = NULL;
    bool is_wanted = false;
    unsigned count = 0;
    memset(names, 0, sizeof names);
    for (const struct tool_symbol *symbol = tool->symbols; symbol->name && count < WANTED;
         symbol++) {
        if (symbol->module != globs) // many have the same
            is_wanted = is_in(globs = symbol->module, file, module);
        if (!is_wanted)
            continue;
        struct wanted **same = wanted_by(symbol->name);
        wanted[count] = (struct wanted){symbol, *same};
        *same = &wanted[count++];
    }
    return count > 0;
}

static void consider(struct module *module, const char *name, const Elf64_Sym *symbol) {
    if (!module_has(module, symbol))
        return;
    consider_exit_function(name, module->bias + symbol->st_value);
    bool is_indirect = ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC;
    bool is_local = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL && !module_has_local(module);
    for (const struct wanted *it = *wanted_by(name); it; it = it->next)
        if (strcmp(it->symbol->name, name) == 0 && !(is_local && it->symbol->kind == TOOL_REPLACE))
            hook_symbol(it->symbol, module->bias + symbol->st_value, is_indirect);
}

// After those that have standard names: the same function may have several.
static void consider_family(struct module *module, const char *name, const Elf64_Sym *symbol) {
    uint64_t pc = module->bias + symbol->st_value;
    if (!module_has(module, symbol) || ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
        return;
    for (unsigned i = 0; i < module->family_count; i++) {
        const struct allocator_function *function =
            allocator_function_of(&module->families[i], name);
        if (!function)
            continue;
        module->family_hooks++;
        if (!function_find(pc))
            function_hook(pc, pc, TOOL_REPLACE, tool->allocator_function, (void *)function);
    }
}

static void hook_symbols(struct module *module, const char *path) {
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    module->is_program = process.program && strcmp(path, process.program) == 0;
    module->is_whole = module->is_program && !process.loader_start;
    if (module->is_program || tool->allocator_modules)
        module_find_allocators(module);
    if (choose_wanted(file, module))
        module_visit_symbols(module, consider);
    const char *modules = tool->allocator_modules ? tool->allocator_modules() : NULL;
    if (!modules)
        return;
    if (module->family_count && is_in(modules, file, module))
        module_visit_symbols(module, consider_family);
    module_announce_allocators(module, path, strcmp(modules, "*") != 0);
}

void functions_of_module(uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    TOOL_HOOK(module, start, end, offset, path);
    struct module module;
    if (!module_open(&module, start, end, offset, path))
        return;
    cache_lock();
    required_check(&module, path);
    if (tool->symbols)
        hook_symbols(&module, path);
    redirections_of_module(&module, path);
    if (process.program && strcmp(path, process.program) == 0)
        sanitizers_check(&module, path);
    cache_unlock();
    module_close(&module);
}
