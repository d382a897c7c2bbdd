#include "attach/objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/elf_file.h"
#include "base/text.h"

#define TABLE_MOST (256u << 20) // bytes of symbols or of their names

static bool is_other_namespace(int pid) {
    struct stat ours, theirs;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
    return stat("/proc/self/ns/mnt", &ours) == 0 && stat(path, &theirs) == 0 &&
           (ours.st_ino != theirs.st_ino || ours.st_dev != theirs.st_dev);
}

char *object_path(int pid, const char *path) {
    struct text text = {0};
    struct stat ours, theirs;
    text_format(&text, "/proc/%d/root", pid);
    // chroot keeps the namespace.
    bool is_elsewhere =
        is_other_namespace(pid) || (stat("/", &ours) == 0 && stat(text.bytes, &theirs) == 0 &&
                                    (ours.st_ino != theirs.st_ino || ours.st_dev != theirs.st_dev));
    if (!is_elsewhere)
        text_clear(&text);
    text_string(&text, path);
    return text_take(&text);
}

int object_open(int pid, const struct maps_mapping *mapping) {
    char link[96];
    size_t length = strlen(mapping->path);
    static const char deleted[] = " (deleted)";
    bool is_deleted = length >= sizeof deleted &&
                      strcmp(mapping->path + length - sizeof deleted + 1, deleted) == 0;
    int fd = -1;
    if (!is_deleted) {
        char *path = object_path(pid, mapping->path);
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        free(path);
    }
    if (fd >= 0)
        return fd;
    // Needs more rights, but knows files that have lost their name.
    snprintf(link, sizeof link, "/proc/%d/map_files/%llx-%llx", pid,
             (unsigned long long)mapping->start, (unsigned long long)mapping->end);
    return open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static void *read_part(int fd, uint64_t offset, uint64_t size) {
    if (!size || size > TABLE_MOST)
        return NULL;
    void *bytes = base_allocate(size);
    if (elf_file_read(fd, offset, bytes, size))
        return bytes;
    free(bytes);
    return NULL;
}

static bool has_function(const Elf64_Sym *symbols, size_t count, const char *names,
                         uint64_t names_size, const char *name, uint64_t *address) {
    size_t length = strlen(name) + 1;
    for (size_t i = 0; i < count; i++) {
        unsigned type = ELF64_ST_TYPE(symbols[i].st_info);
        if ((type == STT_FUNC || type == STT_GNU_IFUNC) && symbols[i].st_shndx != SHN_UNDEF &&
            symbols[i].st_name < names_size && names_size - symbols[i].st_name >= length &&
            memcmp(names + symbols[i].st_name, name, length) == 0) {
            if (address)
                *address = symbols[i].st_value;
            return true;
        }
    }
    return false;
}

static bool search_table(int fd, const Elf64_Shdr *table, const Elf64_Shdr *texts, const char *name,
                         uint64_t *address) {
    Elf64_Sym *symbols = read_part(fd, table->sh_offset, table->sh_size);
    char *names = symbols ? read_part(fd, texts->sh_offset, texts->sh_size) : NULL;
    bool is_there = names && has_function(symbols, table->sh_size / sizeof *symbols, names,
                                          texts->sh_size, name, address);
    free(symbols);
    free(names);
    return is_there;
}

bool object_defines(int fd, const char *name) {
    return object_function(fd, name, NULL);
}

bool object_function(int fd, const char *name, uint64_t *address) {
    Elf64_Ehdr header;
    if (!elf_file_read(fd, 0, &header, sizeof header) || !elf_view_is_known(&header) ||
        header.e_shentsize != sizeof(Elf64_Shdr))
        return false;
    Elf64_Shdr *sections = read_part(fd, header.e_shoff, header.e_shnum * sizeof *sections);
    bool is_there = false;
    for (size_t i = 0; sections && i < header.e_shnum && !is_there; i++)
        if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < header.e_shnum)
            is_there =
                search_table(fd, &sections[i], &sections[sections[i].sh_link], name, address);
    free(sections);
    return is_there;
}

const char *object_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
