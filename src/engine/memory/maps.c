#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/maps.h"
#include "engine/rlimits.h"
#include "engine/memory/maps.h"
#include "engine/memory/memory.h"

void maps_for_each_code(uint64_t start, uint64_t end,
                        void (*fn)(const struct mapped_code *, void *), void *argument) {
    struct maps_reader reader;
    struct maps_mapping line;
    struct space_range range;
    rlimits_lift();
    bool opened = maps_reader_open(&reader, "/proc/self/maps");
    rlimits_restore();
    if (!opened)
        return;
    while (maps_reader_next(&reader, &line)) {
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
    maps_reader_close(&reader);
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
                       const struct maps_mapping *line) {
    unsigned prot = range->attributes.prot;
    const char *name = special_name(range);
    bool is_file = line->inode || line->major || line->minor;
    int length = fprintf(
        out, "%08lx-%08lx %c%c%c%c %08lx %02lx:%02lx %lu ", start, end,
        prot & PROT_READ ? 'r' : '-', prot & PROT_WRITE ? 'w' : '-', prot & PROT_EXEC ? 'x' : '-',
        range->attributes.flags & SPACE_SHARED ? 's' : 'p',
        is_file ? line->offset + (start - line->start) : 0, line->major, line->minor, line->inode);
    if (!name && line->path[0])
        name = line->path;
    if (name)
        fprintf(out, "%*s%s", length < 73 ? 73 - length : 0, "", name);
    fputc('\n', out);
}

// Both the kernel's list (files, what is really mapped) and the ledger (whose it is, rights).
static void write_target_maps(FILE *out, struct maps_reader *reader) {
    struct maps_mapping line;
    struct space_range range;
    while (maps_reader_next(reader, &line)) {
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
    struct maps_reader reader;
    int fd = memfd_create(MAPS_FILE, MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    rlimits_lift();
    FILE *out = fdopen(dup(fd), "w");
    bool opened = out && maps_reader_open(&reader, "/proc/self/maps");
    if (opened) {
        memory_read_lock();
        write_target_maps(out, &reader);
        memory_unlock();
        maps_reader_close(&reader);
    }
    if (out)
        fclose(out);
    rlimits_restore();
    lseek(fd, 0, SEEK_SET);
    if (!opened)
        close(fd);
    return opened ? fd : -EMFILE;
}
