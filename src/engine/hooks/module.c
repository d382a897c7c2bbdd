#include "engine/hooks/module.h"

#include <string.h>

bool module_open(struct module *module, uint64_t start, uint64_t end, uint64_t offset,
                 const char *path) {
    uint64_t address;
    if (!file_open(&module->file, path))
        return false;
    if (!file_code_address(&module->file, offset, &address)) {
        file_close(&module->file);
        return false;
    }
    module->first = address;
    module->last = address + (end - start);
    module->bias = start - address;
    module->start = start;
    module->end = end;
    module->offset = offset;
    memset(module->has, 0, sizeof module->has);
    module->is_whole = false;
    return true;
}

void module_close(struct module *module) {
    file_close(&module->file);
}

static const Elf64_Shdr *sections_of(const struct module *module, unsigned *count) {
    const Elf64_Ehdr *header = file_part(&module->file, 0, sizeof *header);
    const Elf64_Shdr *sections =
        file_part(&module->file, header->e_shoff, header->e_shnum * sizeof *sections);
    *count = sections && header->e_shentsize == sizeof *sections ? header->e_shnum : 0;
    return sections;
}

// The section's bytes if they are texts, each ended by a zero, else NULL.
static const char *texts_of(const struct module *module, const Elf64_Shdr *texts) {
    const char *names = file_part(&module->file, texts->sh_offset, texts->sh_size);
    return names && texts->sh_size && !names[texts->sh_size - 1] ? names : NULL;
}

static void visit_table(struct module *module, const Elf64_Shdr *table, const Elf64_Shdr *texts,
                        visit_symbol *visit) {
    const Elf64_Sym *symbols = file_part(&module->file, table->sh_offset, table->sh_size);
    const char *names = texts_of(module, texts);
    if (!symbols || !names)
        return;
    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        const Elf64_Sym *symbol = &symbols[i];
        unsigned type = ELF64_ST_TYPE(symbol->st_info);
        if ((type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
            symbol->st_name < texts->sh_size)
            visit(module, names + symbol->st_name, symbol);
    }
}

// ---- Go's own table ----------------------------------------------------------------------------
//
// A Go program knows the names of its functions itself, also when it is stripped. Tables as they
// are since Go 1.18: a header; names; entries of two numbers, how far from the beginning of the
// code a function lies, and how far from the entries its description, whose second number is its
// name's place.

struct go_table {
    uint32_t magic;
    uint16_t zero;
    uint8_t quantum, pointer_size;
    uint64_t functions, files, code, names, units, file_names, lines, entries;
};

static void visit_go_table(struct module *module, const Elf64_Shdr *section, visit_symbol *visit) {
    enum { SINCE_18 = 0xfffffff0, SINCE_20 = 0xfffffff1 };
    const uint8_t *bytes = file_part(&module->file, section->sh_offset, section->sh_size);
    const struct go_table *table = (const void *)bytes;
    uint64_t size = section->sh_size;
    if (!bytes || size < sizeof *table || (uint64_t)bytes % 8 ||
        (table->magic != SINCE_18 && table->magic != SINCE_20) || table->pointer_size != 8 ||
        !table->code || table->names >= size || table->entries >= size ||
        table->functions > (size - table->entries) / 8)
        return;
    const uint32_t *entries = (const void *)(bytes + table->entries);
    const char *names = (const char *)bytes + table->names;
    uint64_t room = size - table->names;
    for (uint64_t i = 0; i < table->functions; i++) {
        uint64_t place = table->entries + entries[2 * i + 1] + 4;
        uint32_t name;
        if (place + sizeof name > size)
            return;
        memcpy(&name, bytes + place, sizeof name);
        if (name >= room || !memchr(names + name, 0, room - name))
            return;
        Elf64_Sym symbol = {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                            .st_value = table->code + entries[2 * i]};
        visit(module, names + name, &symbol);
    }
}

static const Elf64_Shdr *find_go_table(struct module *module, const Elf64_Shdr *sections,
                                       unsigned count) {
    static const char end[] = ".gopclntab"; // after .data.rel.ro where code is relocated
    const Elf64_Ehdr *header = file_part(&module->file, 0, sizeof *header);
    const char *names =
        header->e_shstrndx < count ? texts_of(module, &sections[header->e_shstrndx]) : NULL;
    for (unsigned i = 0; names && i < count; i++) {
        if (sections[i].sh_name >= sections[header->e_shstrndx].sh_size)
            continue;
        const char *name = names + sections[i].sh_name;
        size_t length = strlen(name);
        if (length >= sizeof end - 1 && strcmp(name + length - (sizeof end - 1), end) == 0)
            return &sections[i];
    }
    return NULL;
}

// ---- all symbols -------------------------------------------------------------------------------

void module_visit_symbols(struct module *module, visit_symbol *visit) {
    unsigned count;
    const Elf64_Shdr *sections = sections_of(module, &count), *go = NULL;
    bool is_stripped = true;
    for (unsigned i = 0; i < count; i++) {
        if ((sections[i].sh_type != SHT_SYMTAB && sections[i].sh_type != SHT_DYNSYM) ||
            sections[i].sh_link >= count)
            continue;
        visit_table(module, &sections[i], &sections[sections[i].sh_link], visit);
        is_stripped &= sections[i].sh_type != SHT_SYMTAB;
    }
    if (is_stripped && (go = find_go_table(module, sections, count)))
        visit_go_table(module, go, visit);
}

bool module_mentions(const struct module *module, const char *text) {
    unsigned count;
    const Elf64_Shdr *sections = sections_of(module, &count);
    for (unsigned i = 0; i < count; i++) {
        if (sections[i].sh_type != SHT_STRTAB || sections[i].sh_offset == 0)
            continue;
        const char *names = texts_of(module, &sections[i]);
        if (names && memmem(names, sections[i].sh_size, text, strlen(text)))
            return true;
    }
    return false;
}

const char *module_soname(const struct module *module) {
    unsigned count;
    const Elf64_Shdr *sections = sections_of(module, &count);
    for (unsigned i = 0; i < count; i++) {
        if (sections[i].sh_type != SHT_DYNAMIC || sections[i].sh_link >= count)
            continue;
        const Elf64_Shdr *texts = &sections[sections[i].sh_link];
        const char *names = texts_of(module, texts);
        const Elf64_Dyn *entries =
            file_part(&module->file, sections[i].sh_offset, sections[i].sh_size);
        for (size_t j = 0; entries && names && j < sections[i].sh_size / sizeof *entries; j++)
            if (entries[j].d_tag == DT_SONAME && entries[j].d_un.d_val < texts->sh_size)
                return names + entries[j].d_un.d_val;
    }
    return NULL;
}
