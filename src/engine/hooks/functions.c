// Functions that the engine or the tool does something about, by address and by symbol.
#include <elf.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/cache/block.h"
#include "engine/fatal.h"
#include "engine/hooks/hooks.h"

enum { BUCKETS = 1024 };

static struct hooked_function *functions[BUCKETS];

static struct hooked_function **bucket_of(uint64_t pc) {
    return &functions[pc * 0x9e3779b97f4a7c15ull >> 54];
}

void function_hook(uint64_t pc, enum tool_function_kind kind, tool_function *function,
                   void *argument) {
    struct hooked_function *hooked = malloc(sizeof *hooked);
    if (!hooked)
        fatal("out of memory for function hooks");
    *hooked = (struct hooked_function){pc, kind, function, argument, *bucket_of(pc)};
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

struct file_view {
    const uint8_t *bytes;
    size_t size;
};

static const void *part(const struct file_view *file, uint64_t offset, uint64_t size) {
    return offset <= file->size && size <= file->size - offset ? file->bytes + offset : NULL;
}

static void call_hook(void *hook) {
    ((void (*)(void))hook)();
}

static void consider(const char *module, const char *name, uint64_t pc) {
    for (const struct tool_symbol *symbol = tool->symbols; symbol->name; symbol++)
        if (strcmp(symbol->name, name) == 0 && fnmatch(symbol->module, module, 0) == 0 &&
            !function_find(pc))
            function_hook(pc, symbol->kind, call_hook, (void *)symbol->hook);
}

// Symbols of one table that lie in [first, last) of the file's own numbering.
static void read_symbols(const struct file_view *file, const Elf64_Shdr *sections, unsigned count,
                         const Elf64_Shdr *table, const char *module, uint64_t first, uint64_t last,
                         uint64_t bias) {
    if (table->sh_link >= count)
        return;
    const Elf64_Shdr *texts = &sections[table->sh_link];
    const Elf64_Sym *symbols = part(file, table->sh_offset, table->sh_size);
    const char *names = part(file, texts->sh_offset, texts->sh_size);
    if (!symbols || !names || !texts->sh_size || names[texts->sh_size - 1])
        return;
    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        const Elf64_Sym *symbol = &symbols[i];
        if (ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
            symbol->st_value >= first && symbol->st_value < last &&
            symbol->st_name < texts->sh_size)
            consider(module, names + symbol->st_name, bias + symbol->st_value);
    }
}

static void read_module(const struct file_view *file, const char *module, uint64_t start,
                        uint64_t end, uint64_t offset) {
    const Elf64_Ehdr *header = part(file, 0, sizeof *header);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(Elf64_Phdr) || header->e_shentsize != sizeof(Elf64_Shdr))
        return;
    const Elf64_Phdr *segments = part(file, header->e_phoff, header->e_phnum * sizeof *segments);
    const Elf64_Shdr *sections = part(file, header->e_shoff, header->e_shnum * sizeof *sections);
    if (!segments || !sections)
        return;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        uint64_t first_page = segments[i].p_offset & ~4095ul;
        if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_X) || offset < first_page ||
            offset >= segments[i].p_offset + segments[i].p_filesz)
            continue;
        uint64_t address = (segments[i].p_vaddr & ~4095ul) + (offset - first_page);
        for (unsigned j = 0; j < header->e_shnum; j++)
            if (sections[j].sh_type == SHT_SYMTAB || sections[j].sh_type == SHT_DYNSYM)
                read_symbols(file, sections, header->e_shnum, &sections[j], module, address,
                             address + (end - start), start - address);
        return;
    }
}

void functions_of_module(uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    if (!tool->symbols)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        struct file_view file = {.size = st.st_size};
        file.bytes = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file.bytes != MAP_FAILED) {
            const char *slash = strrchr(path, '/');
            cache_lock();
            read_module(&file, slash ? slash + 1 : path, start, end, offset);
            cache_unlock();
            munmap((void *)file.bytes, file.size);
        }
    }
    close(fd);
}
