// The copy of the vdso that the target sees.
//
// The functions of the vdso read kernel data at a fixed distance from their code, so a copy cannot
// run; it serves the target's libc, which looks up symbols in it. The engine turns a call of a
// function in the copy into one of the same function in the real vdso.
#include "engine/load/internal.h"

#include <errno.h>
#include <string.h>

#include "engine/space/place.h"

// What the dynamic section says, as addresses in the real vdso.
struct dynamic {
    const Elf64_Sym *symbols;
    const char *strings;
    const uint32_t *hash;
    const uint32_t *gnu_hash;
};

static struct dynamic read_dynamic(const Elf64_Dyn *entry, uintptr_t bias) {
    struct dynamic dynamic = {0};
    for (; entry->d_tag != DT_NULL; entry++) {
        const void *address = (const void *)(bias + entry->d_un.d_ptr);
        if (entry->d_tag == DT_SYMTAB)
            dynamic.symbols = address;
        else if (entry->d_tag == DT_STRTAB)
            dynamic.strings = address;
        else if (entry->d_tag == DT_HASH)
            dynamic.hash = address;
        else if (entry->d_tag == DT_GNU_HASH)
            dynamic.gnu_hash = address;
    }
    return dynamic;
}

// The symbol table has no length of its own: a hash table implies it.
static size_t count_symbols(const struct dynamic *dynamic) {
    if (dynamic->hash)
        return dynamic->hash[1];
    if (!dynamic->gnu_hash)
        return 0;
    const uint32_t *table = dynamic->gnu_hash;
    uint32_t bucket_count = table[0], first = table[1], bloom_words = table[2], last = 0;
    const uint32_t *buckets = table + 4 + 2 * bloom_words;
    const uint32_t *chains = buckets + bucket_count;
    for (uint32_t i = 0; i < bucket_count; i++)
        last = buckets[i] > last ? buckets[i] : last;
    if (last < first)
        return first;
    // The lowest bit marks the end of a chain.
    while (!(chains[last - first] & 1))
        last++;
    return last + 1;
}

static void collect_symbols(struct load_vdso *vdso, const struct dynamic *dynamic, uintptr_t bias) {
    size_t count = dynamic->symbols && dynamic->strings ? count_symbols(dynamic) : 0;
    for (size_t i = 0; i < count && vdso->symbol_count < LOAD_VDSO_SYMBOLS; i++) {
        const Elf64_Sym *symbol = &dynamic->symbols[i];
        uint64_t offset = bias + symbol->st_value - vdso->real;
        if (ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF ||
            offset >= vdso->size)
            continue;
        vdso->symbols[vdso->symbol_count++] =
            (struct load_symbol){dynamic->strings + symbol->st_name, offset, symbol->st_size};
    }
}

static int place_copy(struct space *space, struct load_vdso *vdso) {
    const struct space_attributes attributes = {.prot = PROT_READ | PROT_EXEC, .tag = SPACE_VDSO};
    uintptr_t place = place_pick(space, PLACE_MODULE, vdso->size, SPACE_PAGE);
    if (!place)
        return -ENOMEM;
    void *copy = mmap((void *)place, vdso->size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (copy == MAP_FAILED)
        return -errno;
    int status =
        copy == (void *)place ? space_map(space, place, place + vdso->size, &attributes) : -EEXIST;
    if (status < 0) {
        munmap(copy, vdso->size);
        return status;
    }
    memcpy(copy, (const void *)vdso->real, vdso->size);
    mprotect(copy, vdso->size, space_native_prot(attributes.prot));
    vdso->copy = place;
    return 0;
}

int load_vdso(struct space *space, uintptr_t real, struct load_vdso *vdso) {
    *vdso = (struct load_vdso){.real = real};
    if (!real)
        return 0;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)real;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(real + header->e_phoff);
    const Elf64_Phdr *load = NULL, *dynamic_segment = NULL;
    for (size_t i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && !load)
            load = &segments[i];
        else if (segments[i].p_type == PT_DYNAMIC)
            dynamic_segment = &segments[i];
    }
    if (!load)
        return -ENOEXEC;
    uintptr_t bias = real - load->p_vaddr;
    vdso->size = page_ceiling(load->p_memsz);
    if (dynamic_segment) {
        struct dynamic dynamic =
            read_dynamic((const Elf64_Dyn *)(bias + dynamic_segment->p_vaddr), bias);
        collect_symbols(vdso, &dynamic, bias);
    }
    return place_copy(space, vdso);
}
