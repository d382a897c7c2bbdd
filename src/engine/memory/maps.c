#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/memory/memory.h"
#include "engine/memory/maps.h"

bool maps_open(struct maps *maps) {
    maps->fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    maps->length = maps->at = 0;
    return maps->fd >= 0;
}

void maps_close(struct maps *maps) {
    close(maps->fd);
}

static bool parse_line(const char *text, struct maps_line *line) {
    unsigned long start, end, offset;
    int used = 0;
    if (sscanf(text, "%lx-%lx %4s %lx %n", &start, &end, line->prot, &offset, &used) < 4)
        return false;
    line->start = start;
    line->end = end;
    line->offset = offset;
    const char *rest = text + used;
    const char *path = strchr(rest, ' '); // after the device
    path = path ? strchr(path + 1, ' ') : NULL;
    size_t length = path ? (size_t)(path - rest) : strlen(rest);
    if (length >= sizeof line->rest)
        return false;
    memcpy(line->rest, rest, length);
    line->rest[length] = 0;
    while (path && *path == ' ')
        path++;
    snprintf(line->path, sizeof line->path, "%s", path ? path : "");
    return true;
}

bool maps_next(struct maps *maps, struct maps_line *line) {
    for (;;) {
        char *begin = maps->buffer + maps->at;
        char *end = memchr(begin, '\n', maps->length - maps->at);
        if (end) {
            *end = 0;
            maps->at = end + 1 - maps->buffer;
            if (parse_line(begin, line))
                return true;
            continue;
        }
        memmove(maps->buffer, begin, maps->length - maps->at);
        maps->length -= maps->at;
        maps->at = 0;
        ssize_t got =
            read(maps->fd, maps->buffer + maps->length, sizeof maps->buffer - maps->length);
        if (got <= 0)
            return false;
        maps->length += got;
    }
}

void maps_for_each_code(uint64_t start, uint64_t end,
                        void (*fn)(const struct mapped_code *, void *), void *argument) {
    struct maps maps;
    struct maps_line line;
    struct space_range range;
    if (!maps_open(&maps))
        return;
    while (maps_next(&maps, &line)) {
        if (line.path[0] != '/' || line.start >= end || line.end <= start)
            continue;
        uint64_t at = line.start > start ? line.start : start;
        uint64_t stop = line.end < end ? line.end : end;
        while (space_next(&target_space, &at, stop, &range)) {
            struct mapped_code code = {.start = range.start,
                                       .end = range.end,
                                       .offset = line.offset + (range.start - line.start),
                                       .path = line.path};
            if (range.attributes.prot & PROT_EXEC)
                fn(&code, argument);
        }
    }
    maps_close(&maps);
}

static const char *special_name(const struct space_range *range) {
    switch (range->attributes.tag) {
    case SPACE_STACK:
        return "[stack]";
    case SPACE_BRK:
        return "[heap]";
    case SPACE_VDSO:
        return "[vdso]";
    default:
        return NULL;
    }
}

static void write_line(FILE *out, uint64_t start, uint64_t end, const struct space_range *range,
                       const struct maps_line *line) {
    unsigned prot = range->attributes.prot;
    const char *name = special_name(range);
    bool is_file = strcmp(line->rest, "00:00 0") != 0;
    int length =
        fprintf(out, "%08lx-%08lx %c%c%c%c %08lx %s ", start, end, prot & PROT_READ ? 'r' : '-',
                prot & PROT_WRITE ? 'w' : '-', prot & PROT_EXEC ? 'x' : '-',
                range->attributes.flags & SPACE_SHARED ? 's' : 'p',
                is_file ? line->offset + (start - line->start) : 0, line->rest);
    if (!name && line->path[0])
        name = line->path;
    if (name)
        fprintf(out, "%*s%s", length < 73 ? 73 - length : 0, "", name);
    fputc('\n', out);
}

// Both the kernel's list (files, what is really mapped) and the ledger (whose it is, rights).
static void write_target_maps(FILE *out, struct maps *maps) {
    struct maps_line line;
    struct space_range range;
    while (maps_next(maps, &line)) {
        uint64_t at = line.start;
        while (space_next(&target_space, &at, line.end, &range)) {
            bool reserved = range.attributes.tag == SPACE_BRK && !range.attributes.prot;
            if (range.attributes.tag != SPACE_ENGINE && range.attributes.tag != SPACE_GUARD &&
                !reserved)
                write_line(out, range.start, range.end, &range, &line);
        }
    }
}

int maps_of_target(void) {
    struct maps maps;
    int fd = memfd_create(MAPS_FILE, MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    FILE *out = fdopen(dup(fd), "w");
    if (!out || !maps_open(&maps)) {
        close(fd);
        return -EMFILE;
    }
    memory_read_lock();
    write_target_maps(out, &maps);
    memory_unlock();
    maps_close(&maps);
    fclose(out);
    lseek(fd, 0, SEEK_SET);
    return fd;
}
