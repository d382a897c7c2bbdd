// Reading /proc/PID/maps, line by line.
//
// Words:
//   mapping  a run of pages with the same file and rights: one line of the file
//   path     what the line ends with: a file's path, or a name in brackets such as [stack], or
//            nothing
//
//     struct maps_reader reader;
//     struct maps_mapping mapping;
//     for (maps_reader_open(&reader, "/proc/self/maps"); maps_reader_next(&reader, &mapping);)
//         ...
//     maps_reader_close(&reader);
//
// Both sides. No allocation, no libc but the bare system calls, no cancellation point, integers
// only: also for a signal handler in the target. errno may change. A reader takes some 4 KiB of its
// owner's stack. The list may change while it is read; each line by itself is right.
#ifndef QUERN_BASE_MAPS_H
#define QUERN_BASE_MAPS_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// The kernel's paths fit in a page; numbers and rights stand before them.
#define MAPS_LINE_MAX (4096 + 256)

struct maps_mapping {
    uint64_t start, end;   // addresses; the end is the first behind it
    uint64_t offset;       // in the file
    uint64_t inode;        // 0: no file
    uint64_t major, minor; // of the device
    bool readable, writable, executable, shared;
    const char *path; // never NULL; like `line`, good until the next line is read
    const char *line; // all of it
};

struct maps_reader {
    int fd;          // -1: could not be opened
    size_t at, used; // bytes of the buffer: taken, and there
    bool is_cut;     // the rest of a line that is too long is still to be skipped
    char buffer[MAPS_LINE_MAX];
};

// ---- one line ----

static inline const char *maps_hex(const char *text, uint64_t *value) {
    for (*value = 0;; text++) {
        unsigned digit = (unsigned char)*text - '0';
        if (digit > 9)
            digit = (unsigned char)*text >= 'a' ? (unsigned char)*text - 'a' + 10u : 16;
        if (digit > 15)
            return text;
        *value = *value << 4 | digit;
    }
}

static inline const char *maps_field(const char *text) {
    while (*text && *text != ' ')
        text++;
    while (*text == ' ')
        text++;
    return text;
}

// Parses a line that ends with a NUL. False: it is not one of this file.
static inline bool maps_parse(const char *line, struct maps_mapping *mapping) {
    const char *at = maps_hex(line, &mapping->start);
    mapping->line = line;
    if (at == line || *at++ != '-')
        return false;
    at = maps_field(maps_hex(at, &mapping->end));
    if (!at[0] || !at[1] || !at[2] || !at[3] || mapping->start >= mapping->end)
        return false;
    mapping->readable = at[0] == 'r';
    mapping->writable = at[1] == 'w';
    mapping->executable = at[2] == 'x';
    mapping->shared = at[3] == 's';
    at = maps_field(at);
    maps_hex(at, &mapping->offset);
    at = maps_hex(maps_field(at), &mapping->major);
    mapping->minor = 0;
    if (*at == ':')
        at = maps_hex(at + 1, &mapping->minor);
    at = maps_field(at);
    for (mapping->inode = 0; *at >= '0' && *at <= '9'; at++)
        mapping->inode = mapping->inode * 10 + (unsigned)(*at - '0');
    mapping->path = maps_field(at);
    return true;
}

// ---- the file ----

static inline bool maps_reader_open(struct maps_reader *reader, const char *path) {
    reader->at = reader->used = 0;
    reader->is_cut = false;
    reader->fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    return reader->fd >= 0;
}

static inline void maps_reader_close(struct maps_reader *reader) {
    if (reader->fd >= 0)
        syscall(SYS_close, reader->fd);
    reader->fd = -1;
}

// Reads more behind what is in the buffer. False: there is no more.
static inline bool maps_fill(struct maps_reader *reader) {
    for (size_t i = reader->at; i < reader->used; i++)
        reader->buffer[i - reader->at] = reader->buffer[i];
    reader->used -= reader->at;
    reader->at = 0;
    if (reader->used == sizeof reader->buffer) {
        reader->used = 0;
        reader->is_cut = true;
    }
    long got;
    do
        got = reader->fd < 0 ? 0
                             : syscall(SYS_read, reader->fd, reader->buffer + reader->used,
                                       sizeof reader->buffer - reader->used);
    while (got < 0 && errno == EINTR);
    if (got > 0)
        reader->used += (size_t)got;
    return got > 0;
}

// The next mapping; false: there are no more. Lines that are too long or damaged are skipped.
static inline bool maps_reader_next(struct maps_reader *reader, struct maps_mapping *mapping) {
    for (size_t end = reader->at;;) {
        while (end < reader->used && reader->buffer[end] != '\n')
            end++;
        if (end == reader->used) {
            if (!maps_fill(reader))
                return false;
            end = reader->at;
            continue;
        }
        const char *line = reader->buffer + reader->at;
        bool is_cut = reader->is_cut;
        reader->buffer[end] = 0;
        reader->at = ++end;
        reader->is_cut = false;
        if (!is_cut && maps_parse(line, mapping))
            return true;
    }
}

#endif
