#include "engine/hooks/module.h"

#include <string.h>

bool module_open(struct module *module, uint64_t start, uint64_t end, uint64_t offset,
                 const char *path) {
    memset(module, 0, sizeof *module);
    if (!file_open(&module->file, path))
        return false;
    if (!elf_view_bias(&module->file, start, offset, &module->bias)) {
        file_close(&module->file);
        return false;
    }
    module->first = start - module->bias;
    module->last = end - module->bias;
    module->start = start;
    module->end = end;
    module->offset = offset;
    return true;
}

void module_close(struct module *module) {
    file_close(&module->file);
}

static void visit_table(struct module *module, const Elf64_Shdr *table, visit_symbol *visit) {
    struct elf_symbols symbols = elf_view_symbols(&module->file, table);
    Elf64_Sym symbol;
    const char *name;
    while ((name = elf_view_next_function(&symbols, &symbol)))
        visit(module, name, &symbol);
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
    const uint8_t *bytes = elf_view_contents(&module->file, section);
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

static bool find_go_table(const struct module *module, Elf64_Shdr *section) {
    static const char end[] = ".gopclntab"; // after .data.rel.ro where code is relocated
    const struct elf_view *file = &module->file;
    for (size_t i = 0; elf_view_section(file, i, section); i++) {
        const char *name = elf_view_text(file, &file->names, section->sh_name);
        size_t length = name ? strlen(name) : 0;
        if (length >= sizeof end - 1 && strcmp(name + length - (sizeof end - 1), end) == 0)
            return true;
    }
    return false;
}

// ---- all symbols -------------------------------------------------------------------------------

void module_visit_symbols(struct module *module, visit_symbol *visit) {
    Elf64_Shdr section;
    module->is_stripped = true;
    for (size_t i = 0; elf_view_section(&module->file, i, &section); i++) {
        if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM)
            continue;
        visit_table(module, &section, visit);
        module->is_stripped &= section.sh_type != SHT_SYMTAB;
    }
    if (module->is_stripped && find_go_table(module, &section))
        visit_go_table(module, &section, visit);
}

bool module_mentions(const struct module *module, const char *text) {
    Elf64_Shdr section;
    for (size_t i = 0; elf_view_section(&module->file, i, &section); i++) {
        if (section.sh_type != SHT_STRTAB || section.sh_offset == 0)
            continue;
        const char *names = elf_view_text(&module->file, &section, 0);
        if (names && memmem(names, section.sh_size, text, strlen(text)))
            return true;
    }
    return false;
}

const char *module_soname(const struct module *module) {
    const struct elf_view *file = &module->file;
    Elf64_Shdr section, texts;
    for (size_t i = 0; elf_view_section(file, i, &section); i++) {
        if (section.sh_type != SHT_DYNAMIC || !elf_view_section(file, section.sh_link, &texts))
            continue;
        const Elf64_Dyn *entries = elf_view_contents(file, &section);
        for (size_t j = 0; entries && j < section.sh_size / sizeof *entries; j++) {
            const char *name = entries[j].d_tag == DT_SONAME
                                   ? elf_view_text(file, &texts, entries[j].d_un.d_val)
                                   : NULL;
            if (name)
                return name;
        }
    }
    return NULL;
}
