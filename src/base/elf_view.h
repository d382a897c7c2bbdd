// A bounded view of a 64-bit x86-64 ELF file whose bytes are in memory.
//
// Words:
//   view     the bytes of a file together with its headers. It borrows the bytes and owns nothing
//   part     a run of bytes in the file, by offset and size
//   segment  what a program header describes, section what a section header describes
//   note     a record of a PT_NOTE segment or SHT_NOTE section: type, name and contents
//
// Nothing here trusts the file: every offset, count and size is checked against the bytes given,
// and headers are copied out, so that they need no alignment. A file with damaged section headers
// still has its segments: its section count is 0.
//
// Both sides. No allocation, no libc, integers only: also for a signal handler in the target. Who
// maps a file must know that reading raises SIGBUS when the file becomes shorter (base/guard.h).
#ifndef QUERN_BASE_ELF_VIEW_H
#define QUERN_BASE_ELF_VIEW_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_view {
    const uint8_t *bytes;
    uint64_t size;
    Elf64_Ehdr header;
    size_t segment_count, section_count; // as many as are there whole
    Elf64_Shdr names;                    // the section of the sections' names; size 0: none
};

struct elf_note {
    uint32_t type;
    const uint8_t *name, *content;
    uint32_t name_size, size; // the name's with its NUL
};

// [offset, offset + size) of the file; NULL: it is not all there.
static inline const void *elf_view_part(const struct elf_view *view, uint64_t offset,
                                        uint64_t size) {
    return offset <= view->size && size <= view->size - offset ? view->bytes + offset : NULL;
}

// Copies a part out. False: it is not all there.
static inline bool elf_view_copy(const struct elf_view *view, void *to, uint64_t offset,
                                 uint64_t size) {
    const void *from = elf_view_part(view, offset, size);
    if (from)
        __builtin_memcpy(to, from, size);
    return from != NULL;
}

// Whether a header is one of the files that Quern reads: 64 bits, little-endian, x86-64.
static inline bool elf_view_is_known(const Elf64_Ehdr *header) {
    const unsigned char *ident = header->e_ident;
    return ident[EI_MAG0] == ELFMAG0 && ident[EI_MAG1] == ELFMAG1 && ident[EI_MAG2] == ELFMAG2 &&
           ident[EI_MAG3] == ELFMAG3 && ident[EI_CLASS] == ELFCLASS64 &&
           ident[EI_DATA] == ELFDATA2LSB && header->e_machine == EM_X86_64;
}

// ---- segments and sections ----

// False: there is no segment of this number.
static inline bool elf_view_segment(const struct elf_view *view, size_t number,
                                    Elf64_Phdr *segment) {
    return number < view->segment_count &&
           elf_view_copy(view, segment, view->header.e_phoff + number * sizeof *segment,
                         sizeof *segment);
}

static inline bool elf_view_section(const struct elf_view *view, size_t number,
                                    Elf64_Shdr *section) {
    return number < view->section_count &&
           elf_view_copy(view, section, view->header.e_shoff + number * sizeof *section,
                         sizeof *section);
}

// The bytes of a section, sh_size of them; NULL: they are not all in the file.
static inline const void *elf_view_contents(const struct elf_view *view,
                                            const Elf64_Shdr *section) {
    if (section->sh_type == SHT_NOBITS)
        return NULL;
    return elf_view_part(view, section->sh_offset, section->sh_size);
}

// A text of a section of texts, ended by a NUL within the section; NULL: it is not.
static inline const char *elf_view_text(const struct elf_view *view, const Elf64_Shdr *texts,
                                        uint64_t offset) {
    const char *bytes = elf_view_contents(view, texts);
    if (!bytes || offset >= texts->sh_size || bytes[texts->sh_size - 1])
        return NULL;
    return bytes + offset;
}

// The number of the first section of this name; section_count: there is none.
static inline size_t elf_view_find_section(const struct elf_view *view, const char *name,
                                           Elf64_Shdr *section) {
    size_t number = 0;
    for (; elf_view_section(view, number, section); number++) {
        const char *text = elf_view_text(view, &view->names, section->sh_name);
        const char *at = name;
        while (text && *at && *text == *at)
            text++, at++;
        if (text && *text == *at)
            break;
    }
    return number;
}

// Looks at a file. False: it is none that Quern reads, or its program headers are not in it.
static inline bool elf_view_open(struct elf_view *view, const void *bytes, uint64_t size) {
    *view = (struct elf_view){.bytes = (const uint8_t *)bytes, .size = size};
    Elf64_Ehdr *header = &view->header;
    if (!elf_view_copy(view, header, 0, sizeof *header) || !elf_view_is_known(header))
        return false;
    if (header->e_phnum &&
        (header->e_phentsize != sizeof(Elf64_Phdr) ||
         !elf_view_part(view, header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr))))
        return false;
    view->segment_count = header->e_phnum;
    if (header->e_shentsize == sizeof(Elf64_Shdr) &&
        elf_view_part(view, header->e_shoff, (uint64_t)header->e_shnum * sizeof(Elf64_Shdr)))
        view->section_count = header->e_shnum;
    if (!elf_view_section(view, header->e_shstrndx, &view->names))
        view->names.sh_size = 0;
    return true;
}

// What is added to the file's addresses where it is mapped: code of the file, from `offset` on,
// lies at `start`. False: no executable segment has bytes at that offset.
static inline bool elf_view_bias(const struct elf_view *view, uint64_t start, uint64_t offset,
                                 uint64_t *bias) {
    Elf64_Phdr segment;
    for (size_t i = 0; elf_view_segment(view, i, &segment); i++) {
        uint64_t first = segment.p_offset & ~UINT64_C(4095); // whole pages are mapped
        if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_X) || offset < first ||
            offset >= segment.p_offset + segment.p_filesz)
            continue;
        *bias = start - offset + segment.p_offset - segment.p_vaddr;
        return true;
    }
    return false;
}

// ---- symbols ----

// A walk over a table of symbols.
struct elf_symbols {
    const uint8_t *next, *end; // whole symbols
    const char *names;
    uint64_t names_size;
};

// Begins at the first symbol of a table (SHT_SYMTAB, SHT_DYNSYM). A table without names, or one
// that is not all in the file, has no symbols.
static inline struct elf_symbols elf_view_symbols(const struct elf_view *view,
                                                  const Elf64_Shdr *table) {
    struct elf_symbols symbols = {0};
    Elf64_Shdr texts;
    const uint8_t *bytes = elf_view_contents(view, table);
    if (!bytes || !elf_view_section(view, table->sh_link, &texts))
        return symbols;
    symbols.names = elf_view_text(view, &texts, 0);
    symbols.names_size = texts.sh_size;
    symbols.next = bytes;
    symbols.end =
        bytes + (symbols.names ? table->sh_size / sizeof(Elf64_Sym) : 0) * sizeof(Elf64_Sym);
    return symbols;
}

// Copies the next function that the file defines, and returns its name; NULL: there are no more.
static inline const char *elf_view_next_function(struct elf_symbols *symbols, Elf64_Sym *symbol) {
    while (symbols->next < symbols->end) {
        __builtin_memcpy(symbol, symbols->next, sizeof *symbol);
        symbols->next += sizeof *symbol;
        unsigned type = ELF64_ST_TYPE(symbol->st_info);
        if ((type == STT_FUNC || type == STT_GNU_IFUNC) && symbol->st_shndx != SHN_UNDEF &&
            symbol->st_name < symbols->names_size)
            return symbols->names + symbol->st_name;
    }
    return NULL;
}

// ---- notes ----

// Takes the next note of a run of them: *notes and *size become what is left. False: there are no
// more, or the next one is damaged.
static inline bool elf_view_next_note(const uint8_t **notes, uint64_t *size,
                                      struct elf_note *note) {
    Elf64_Nhdr header;
    if (*size < sizeof header)
        return false;
    __builtin_memcpy(&header, *notes, sizeof header);
    uint64_t left = *size - sizeof header;
    uint64_t name_room = ((uint64_t)header.n_namesz + 3) & ~UINT64_C(3);
    uint64_t room = ((uint64_t)header.n_descsz + 3) & ~UINT64_C(3);
    if (name_room > left || header.n_descsz > left - name_room)
        return false;
    *note = (struct elf_note){.type = header.n_type,
                              .name = *notes + sizeof header,
                              .content = *notes + sizeof header + name_room,
                              .name_size = header.n_namesz,
                              .size = header.n_descsz};
    left -= name_room;
    // The last one may lack the bytes that would fill its last word.
    *size = room < left ? left - room : 0;
    *notes = note->content + (room < left ? room : left);
    return true;
}

// The build id in a run of notes; false: there is none.
static inline bool elf_view_build_id(const uint8_t *notes, uint64_t size, struct elf_note *note) {
    while (elf_view_next_note(&notes, &size, note))
        if (note->type == NT_GNU_BUILD_ID && note->name_size == 4 && note->name[0] == 'G' &&
            note->name[1] == 'N' && note->name[2] == 'U' && !note->name[3])
            return true;
    return false;
}

#endif
