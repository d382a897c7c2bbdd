#include "tools/flame/supervisor/code.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/text.h"

#define FILES_MAX   16
#define ENTRIES_MAX 128

struct code_file {
    char *path; // NULL: none
    int fd;     // -1: it cannot be read
    Elf64_Phdr loaded[ELF_FILE_SEGMENTS];
    size_t loaded_count;
    // Relocations by the file's own address, which linkers put first and in order.
    uint64_t relocations, relocation_count;
};

struct flame_code {
    struct code_file files[FILES_MAX];
    size_t next;
};

struct flame_code *flame_code_open(void) {
    struct flame_code *code = base_allocate(sizeof *code);
    *code = (struct flame_code){0};
    return code;
}

static bool offset_of(const struct code_file *file, uint64_t address, uint64_t *offset) {
    for (size_t i = 0; i < file->loaded_count; i++) {
        const Elf64_Phdr *part = &file->loaded[i];
        if (address >= part->p_vaddr && address - part->p_vaddr < part->p_filesz) {
            *offset = address - part->p_vaddr + part->p_offset;
            return true;
        }
    }
    return false;
}

// The same code may be in two parts' pages: the executable one is meant.
static bool address_of(const struct code_file *file, uint64_t offset, uint64_t *address) {
    for (size_t i = 0; i < file->loaded_count; i++) {
        const Elf64_Phdr *part = &file->loaded[i];
        if (part->p_flags & PF_X && offset >= part->p_offset &&
            offset - part->p_offset < part->p_filesz) {
            *address = offset - part->p_offset + part->p_vaddr;
            return true;
        }
    }
    return false;
}

static void read_dynamic(struct code_file *file, const Elf64_Phdr *part) {
    Elf64_Dyn entries[ENTRIES_MAX];
    size_t size = part->p_filesz < sizeof entries ? part->p_filesz : sizeof entries;
    uint64_t table = 0, count = 0;
    if (!elf_file_read(file->fd, part->p_offset, entries, size))
        return;
    for (size_t i = 0; i < size / sizeof *entries && entries[i].d_tag != DT_NULL; i++) {
        if (entries[i].d_tag == DT_RELA)
            table = entries[i].d_un.d_ptr;
        else if (entries[i].d_tag == DT_RELACOUNT)
            count = entries[i].d_un.d_val;
    }
    if (offset_of(file, table, &file->relocations))
        file->relocation_count = count;
}

static void read_headers(struct code_file *file) {
    Elf64_Phdr parts[ELF_FILE_SEGMENTS];
    size_t count = elf_file_open(file->fd, parts);
    for (size_t i = 0; i < count; i++)
        if (parts[i].p_type == PT_LOAD)
            file->loaded[file->loaded_count++] = parts[i];
    for (size_t i = 0; i < count; i++)
        if (parts[i].p_type == PT_DYNAMIC)
            read_dynamic(file, &parts[i]);
}

static void close_file(struct code_file *file) {
    if (file->path && file->fd >= 0)
        close(file->fd);
    free(file->path);
    *file = (struct code_file){0};
}

static const struct code_file *find_file(struct flame_code *code, const char *path) {
    for (size_t i = 0; i < FILES_MAX; i++)
        if (code->files[i].path && strcmp(code->files[i].path, path) == 0)
            return &code->files[i];
    struct code_file *file = &code->files[code->next++ % FILES_MAX];
    close_file(file);
    file->path = base_copy(path);
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    read_headers(file);
    return file;
}

bool flame_code_read(struct flame_code *code, const char *path, uint64_t offset, uint8_t *bytes,
                     size_t size) {
    return elf_file_read(find_file(code, path)->fd, offset, bytes, size);
}

// The relocation of the pointer at an address; false: none is there.
static bool find_relocation(const struct code_file *file, uint64_t address, Elf64_Rela *found) {
    uint64_t low = 0, high = file->relocation_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (!elf_file_read(file->fd, file->relocations + middle * sizeof *found, found,
                           sizeof *found))
            return false;
        if (found->r_offset == address)
            return ELF64_R_TYPE(found->r_info) == R_X86_64_RELATIVE;
        if (found->r_offset < address)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool flame_code_pointer(struct flame_code *code, const char *path, uint64_t offset,
                        int64_t *distance) {
    const struct code_file *file = find_file(code, path);
    uint64_t place;
    Elf64_Rela found;
    if (!address_of(file, offset, &place) ||
        !find_relocation(file, place + (uint64_t)*distance, &found))
        return false;
    *distance = found.r_addend - (int64_t)place;
    return true;
}

void flame_code_close(struct flame_code *code) {
    for (size_t i = 0; i < FILES_MAX; i++)
        close_file(&code->files[i]);
    free(code);
}
