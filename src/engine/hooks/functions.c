// Functions that the engine or the tool does something about, by address and by symbol.
#include <elf.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/cache/block.h"
#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/load/file.h"
#include "engine/memory/memory.h"
#include "engine/task.h"

enum { BUCKETS = 1024 };

static struct hooked_function *functions[BUCKETS];

static struct hooked_function **bucket_of(uint64_t pc) {
    return &functions[pc * 0x9e3779b97f4a7c15ull >> 54];
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

static bool is_in(const char *globs, const char *module) {
    char glob[256];
    while (*globs) {
        size_t size = strcspn(globs, "|");
        snprintf(glob, sizeof glob, "%.*s", (int)size, globs);
        if (fnmatch(glob, module, 0) == 0)
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
static uint64_t exit_function;

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

uint64_t function_at_exit(uint64_t *place, tool_function *after, void *argument) {
    cache_lock();
    uint64_t function = next_place < places_end ? exit_function : 0;
    if (function) {
        *place = next_place;
        function_hook(next_place, next_place, TOOL_REPLACE, after, argument);
        next_place += PLACE_SIZE;
    }
    cache_unlock();
    return function;
}

static void resolve(void *place) {
    self->gpr[RAX] = (uint64_t)place;
}

static void hook_symbol(const struct tool_symbol *symbol, uint64_t pc, bool is_indirect) {
    if (!is_indirect) {
        function_hook(pc, pc, symbol->kind, call_hook, (void *)symbol->hook);
    } else if (symbol->kind == TOOL_REPLACE && next_place < places_end) {
        function_hook(next_place, pc, TOOL_REPLACE, call_hook, (void *)symbol->hook);
        function_hook(pc, pc, TOOL_REPLACE, resolve, (void *)next_place);
        next_place += PLACE_SIZE;
    }
}

static void consider(const char *module, const char *name, uint64_t pc, bool is_indirect) {
    if (tool->exit_function && strcmp(tool->exit_function, name) == 0)
        exit_function = pc;
    for (const struct tool_symbol *symbol = tool->symbols; symbol->name; symbol++)
        if (strcmp(symbol->name, name) == 0 && is_in(symbol->module, module) && !function_find(pc))
            hook_symbol(symbol, pc, is_indirect);
}

// Symbols of one table that lie in [first, last) of the file's own numbering.
static void read_symbols(const struct file_view *file, const Elf64_Shdr *sections, unsigned count,
                         const Elf64_Shdr *table, const char *module, uint64_t first, uint64_t last,
                         uint64_t bias) {
    if (table->sh_link >= count)
        return;
    const Elf64_Shdr *texts = &sections[table->sh_link];
    const Elf64_Sym *symbols = file_part(file, table->sh_offset, table->sh_size);
    const char *names = file_part(file, texts->sh_offset, texts->sh_size);
    if (!symbols || !names || !texts->sh_size || names[texts->sh_size - 1])
        return;
    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        const Elf64_Sym *symbol = &symbols[i];
        unsigned type = ELF64_ST_TYPE(symbol->st_info);
        if ((type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
            symbol->st_value >= first && symbol->st_value < last &&
            symbol->st_name < texts->sh_size)
            consider(module, names + symbol->st_name, bias + symbol->st_value,
                     type == STT_GNU_IFUNC);
    }
}

static void read_module(const struct file_view *file, const char *module, uint64_t start,
                        uint64_t end, uint64_t offset) {
    uint64_t address;
    if (!file_code_address(file, offset, &address))
        return;
    const Elf64_Ehdr *header = file_part(file, 0, sizeof *header);
    const Elf64_Shdr *sections =
        file_part(file, header->e_shoff, header->e_shnum * sizeof *sections);
    if (!sections || header->e_shentsize != sizeof *sections)
        return;
    for (unsigned i = 0; i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB || sections[i].sh_type == SHT_DYNSYM)
            read_symbols(file, sections, header->e_shnum, &sections[i], module, address,
                         address + (end - start), start - address);
}

void functions_of_module(uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    TOOL_HOOK(module, start, end, offset, path);
    struct file_view file;
    if (!tool->symbols || !file_open(&file, path))
        return;
    const char *slash = strrchr(path, '/');
    cache_lock();
    read_module(&file, slash ? slash + 1 : path, start, end, offset);
    cache_unlock();
    file_close(&file);
}
