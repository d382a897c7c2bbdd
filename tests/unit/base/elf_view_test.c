// base/elf_view.h, on this program itself and on damaged copies of it.
#include "unit.h"

#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/elf_file.h"
#include "base/maps.h"

static uint8_t *own_file(size_t *size) {
    int fd = open("/proc/self/exe", O_RDONLY);
    struct stat status;
    CHECK(fd >= 0 && fstat(fd, &status) == 0);
    *size = (size_t)status.st_size;
    uint8_t *bytes = malloc(*size);
    CHECK_EQ(read(fd, bytes, *size), *size);
    close(fd);
    return bytes;
}

TEST(elf_view_finds_segments_and_sections) {
    size_t size;
    uint8_t *bytes = own_file(&size);
    struct elf_view view;
    Elf64_Phdr segment;
    Elf64_Shdr section;
    CHECK(elf_view_open(&view, bytes, size));
    CHECK(view.segment_count > 0 && view.section_count > 0);
    size_t loads = 0;
    for (size_t i = 0; elf_view_segment(&view, i, &segment); i++)
        loads += segment.p_type == PT_LOAD;
    CHECK(loads > 0);
    CHECK(elf_view_find_section(&view, ".text", &section) < view.section_count);
    CHECK(elf_view_contents(&view, &section) != NULL);
    CHECK(elf_view_find_section(&view, ".bss", &section) < view.section_count);
    CHECK(elf_view_contents(&view, &section) == NULL);
    CHECK_EQ(elf_view_find_section(&view, ".tex", &section), view.section_count);
    CHECK_EQ(elf_view_find_section(&view, ".textual", &section), view.section_count);
    CHECK(!elf_view_segment(&view, view.segment_count, &segment));
    CHECK(!elf_view_section(&view, view.section_count, &section));
    free(bytes);
}

TEST(elf_view_refuses_other_files) {
    size_t size;
    uint8_t *bytes = own_file(&size);
    struct elf_view view;
    static const size_t places[] = {EI_MAG0, EI_MAG3, EI_CLASS, EI_DATA,
                                    offsetof(Elf64_Ehdr, e_machine)};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        bytes[places[i]] ^= 0x40;
        CHECK(!elf_view_open(&view, bytes, size));
        bytes[places[i]] ^= 0x40;
    }
    CHECK(elf_view_open(&view, bytes, size));
    CHECK(!elf_view_open(&view, bytes, sizeof(Elf64_Ehdr) - 1));
    CHECK(!elf_view_open(&view, bytes, sizeof(Elf64_Ehdr)));
    CHECK(!elf_view_open(&view, bytes, 0));
    free(bytes);
}

TEST(elf_view_part_is_within_the_file) {
    struct elf_view view = {.bytes = (const uint8_t *)"0123456789", .size = 10};
    CHECK(elf_view_part(&view, 0, 10) == view.bytes);
    CHECK(elf_view_part(&view, 10, 0) == view.bytes + 10);
    CHECK(!elf_view_part(&view, 0, 11));
    CHECK(!elf_view_part(&view, 11, 0));
    CHECK(!elf_view_part(&view, 5, UINT64_MAX));
    CHECK(!elf_view_part(&view, UINT64_MAX, 5));
}

TEST(elf_view_text_ends_within_its_section) {
    struct elf_view view = {.bytes = (const uint8_t *)"ab\0cdef", .size = 7};
    Elf64_Shdr texts = {.sh_type = SHT_STRTAB, .sh_offset = 0, .sh_size = 3};
    CHECK_STR(elf_view_text(&view, &texts, 1), "b");
    CHECK(!elf_view_text(&view, &texts, 3));
    texts.sh_size = 5;
    CHECK(!elf_view_text(&view, &texts, 1));
    texts.sh_size = 8;
    CHECK(!elf_view_text(&view, &texts, 1));
}

// Every cut of the file, and every byte of the headers changed: in the sanitizers' build an access
// outside of the copy ends the test.
TEST(elf_view_of_a_damaged_file_stays_within_it) {
    size_t size;
    uint8_t *bytes = own_file(&size);
    struct elf_view view;
    Elf64_Shdr section;
    for (size_t cut = 0; cut < size; cut += 1 + cut / 100) {
        uint8_t *copy = memcpy(malloc(cut + 1), bytes, cut);
        if (elf_view_open(&view, copy, cut))
            elf_view_find_section(&view, "nowhere", &section);
        free(copy);
    }
    for (size_t i = 0; i < sizeof(Elf64_Ehdr); i++) {
        uint8_t old = bytes[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[i] = old ^ (uint8_t)(1 << bit);
            if (elf_view_open(&view, bytes, size))
                for (size_t j = 0; elf_view_section(&view, j, &section); j++) {
                    const char *name = elf_view_text(&view, &view.names, section.sh_name);
                    CHECK(!name || (const uint8_t *)name + strlen(name) < bytes + size);
                }
        }
        bytes[i] = old;
    }
    free(bytes);
}

// The kernel says where this program is; the view must say the same of its code and of its data.
TEST(elf_view_bias_is_where_the_kernel_put_the_file) {
    size_t size;
    uint8_t *bytes = own_file(&size);
    struct elf_view view;
    struct maps_reader reader;
    struct maps_mapping mapping;
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    CHECK(length > 0);
    path[length] = 0;
    CHECK(elf_view_open(&view, bytes, size));
    size_t found = 0;
    for (maps_reader_open(&reader, "/proc/self/maps"); maps_reader_next(&reader, &mapping);) {
        uint64_t bias = 0;
        if (strcmp(mapping.path, path) != 0 || !mapping.executable)
            continue;
        CHECK(elf_view_bias(&view, mapping.start, mapping.offset, &bias));
        CHECK_EQ(bias, _r_debug.r_map->l_addr);
        found++;
    }
    maps_reader_close(&reader);
    CHECK(found > 0);
    uint64_t bias;
    CHECK(!elf_view_bias(&view, 0x10000, (size + 8192) & ~UINT64_C(4095), &bias));
    free(bytes);
}

TEST(elf_view_walks_notes) {
    static const struct {
        Elf64_Nhdr first;
        char first_name[8];
        char first_content[4];
        Elf64_Nhdr second;
        char second_name[4];
        uint8_t second_content[3];
    } __attribute__((packed))
    notes = {{6, 1, 1}, "other", "x", {4, 3, NT_GNU_BUILD_ID}, "GNU", {1, 2, 3}};
    const uint8_t *at = (const uint8_t *)&notes;
    uint64_t size = sizeof notes;
    struct elf_note note;
    CHECK(elf_view_next_note(&at, &size, &note));
    CHECK_EQ(note.type, 1);
    CHECK_EQ(note.size, 1);
    CHECK_STR((const char *)note.name, "other");
    CHECK(elf_view_next_note(&at, &size, &note));
    CHECK_EQ(note.type, NT_GNU_BUILD_ID);
    CHECK(memcmp(note.content, notes.second_content, 3) == 0);
    CHECK(!elf_view_next_note(&at, &size, &note));
    CHECK(elf_view_build_id((const uint8_t *)&notes, sizeof notes, &note));
    CHECK_EQ(note.size, 3);
    // Without its last byte the second note is damaged, and the first is no build id.
    CHECK(!elf_view_build_id((const uint8_t *)&notes, sizeof notes - 1, &note));
}

// A function that a walk over the symbols must find, with its place.
static __attribute__((noinline, used)) int function_to_be_found(void) {
    return 4711;
}

TEST(elf_view_walks_functions) {
    size_t size;
    uint8_t *bytes = own_file(&size);
    struct elf_view view;
    Elf64_Shdr section;
    Elf64_Sym symbol;
    size_t found = 0, imported = 0;
    CHECK(elf_view_open(&view, bytes, size));
    for (size_t i = 0; elf_view_section(&view, i, &section); i++) {
        if (section.sh_type != SHT_SYMTAB)
            continue;
        struct elf_symbols symbols = elf_view_symbols(&view, &section);
        const char *name;
        while ((name = elf_view_next_function(&symbols, &symbol))) {
            found += strcmp(name, "function_to_be_found") == 0;
            imported += strncmp(name, "memcpy@", 7) == 0; // others define it
        }
        // The names of symbols are in no section: there are none.
        section.sh_link = (uint32_t)view.section_count;
        symbols = elf_view_symbols(&view, &section);
        CHECK(!elf_view_next_function(&symbols, &symbol));
    }
    CHECK_EQ(found, 1);
    CHECK_EQ(imported, 0);
    CHECK_EQ(function_to_be_found(), 4711);
    free(bytes);
}

TEST(elf_file_reads_what_elf_view_sees) {
    size_t size;
    uint8_t *bytes = own_file(&size);
    struct elf_view view;
    Elf64_Phdr segment, segments[ELF_FILE_SEGMENTS];
    int fd = open("/proc/self/exe", O_RDONLY);
    CHECK(elf_view_open(&view, bytes, size));
    CHECK_EQ(elf_file_open(fd, segments), view.segment_count);
    for (size_t i = 0; elf_view_segment(&view, i, &segment); i++)
        CHECK(memcmp(&segment, &segments[i], sizeof segment) == 0);
    CHECK(!elf_file_read(fd, size - 1, segments, 2));
    CHECK(!elf_file_read(fd, UINT64_MAX, segments, 2));
    view.header.e_phnum = ELF_FILE_SEGMENTS + 1;
    CHECK_EQ(elf_file_segments(fd, &view.header, segments), 0);
    close(fd);
    CHECK_EQ(elf_file_open(-1, segments), 0);
    free(bytes);
}

UNIT_MAIN()
