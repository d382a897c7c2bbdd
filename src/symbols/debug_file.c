#include "symbols/debug_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The checksum of .gnu_debuglink: CRC-32 as in zip files. */
static uint32_t crc_add(uint32_t crc, const uint8_t *bytes, size_t count) {
    static uint32_t table[256];
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; bit++)
                value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
            table[i] = value;
        }
    crc = ~crc;
    for (size_t i = 0; i < count; i++)
        crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 255];
    return ~crc;
}

static bool has_crc(int fd, uint32_t wanted) {
    static uint8_t buffer[65536];
    uint32_t crc = 0;
    off_t at = 0;
    ssize_t count;
    while ((count = pread(fd, buffer, sizeof buffer, at)) > 0) {
        crc = crc_add(crc, buffer, (size_t)count);
        at += count;
    }
    return count == 0 && crc == wanted;
}

/* A link may name a FIFO or a device: those are not opened for reading. */
static int open_regular(const char *path) {
    struct stat status;
    if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static int try_link(const struct debug_file_question *question, const char *root,
                    const char *folder, size_t folder_length, const char *below,
                    char **found_name) {
    char *path;
    if (asprintf(&path, "%s%.*s/%s%s", root, (int)folder_length, folder, below, question->link) < 0)
        return -1;
    struct stat own, other;
    int fd = -1;
    bool is_itself = stat(question->file_name, &own) == 0 && stat(path, &other) == 0 &&
                     own.st_dev == other.st_dev && own.st_ino == other.st_ino;
    if (!is_itself)
        fd = open_regular(path);
    if (fd >= 0 && (question->any_checksum || has_crc(fd, question->crc))) {
        *found_name = path;
        return fd;
    }
    if (fd >= 0)
        close(fd);
    free(path);
    return -1;
}

static int find_by_link(const struct debug_file_question *question, char **found_name) {
    if (!question->link || !question->link[0] || strchr(question->link, '/'))
        return -1;
    const char *folder = question->file_name;
    const char *slash = strrchr(folder, '/');
    size_t length = slash ? (size_t)(slash - folder) : 0;
    const char *extra = question->extra_path;
    int fd = try_link(question, "", folder, length, "", found_name);
    if (fd < 0)
        fd = try_link(question, "", folder, length, ".debug/", found_name);
    if (fd < 0)
        fd = try_link(question, "/usr/lib/debug", folder, length, "", found_name);
    if (fd < 0 && extra)
        fd = try_link(question, extra, folder, length, "", found_name);
    if (fd < 0 && extra)
        fd = try_link(question, extra, "", 0, "", found_name);
    return fd;
}

static int ask_servers(const struct debug_file_question *question, char **found_name) {
    const void *id = NULL;
    ssize_t size;
    if (!question->servers)
        return -1;
    if (question->file_name) {
        GElf_Addr place;
        const unsigned char *bits;
        size = dwfl_module_build_id(question->module, &bits, &place);
        id = bits;
    } else {
        /* libdwfl has the module's DWARF already, and looks for the dwz file that it refers to. */
        Dwarf_Addr bias;
        const char *name;
        Dwarf *dwarf = dwfl_module_getdwarf(question->module, &bias);
        size = dwarf ? dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id) : 0;
    }
    return size > 0 ? servers_find(question->servers, id, (size_t)size, question->module_name,
                                   found_name)
                    : -1;
}

int debug_file_find(const struct debug_file_question *question, char **found_name) {
    int fd = -1;
    if (question->file_name) {
        fd = dwfl_build_id_find_debuginfo(question->module, question->user, question->module_name,
                                          question->base, question->file_name, question->link,
                                          question->crc, found_name);
        if (fd < 0)
            fd = find_by_link(question, found_name);
    }
    return fd < 0 ? ask_servers(question, found_name) : fd;
}
