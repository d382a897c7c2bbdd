#include "symbols/generated.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vector.h"

enum {
    PIECES_MAX = 1 << 20,
    LINE_MAX_BYTES = 4096,
    READ_BYTES = 1 << 16,
    START_SLACK_SECONDS = 2, /* clocks of files and processes differ a little */
};
#define FILE_BYTES_MAX   ((uint64_t)256 << 20)
#define PIECE_BYTES_MAX  ((uint64_t)1 << 30)
#define ADDRESS_MAX      ((uint64_t)1 << 47)
#define LOOK_NANOSECONDS 200000000 /* between two looks at the size of the map */

struct writer {
    pid_t pid;       /* 0: there is none */
    pid_t inner_pid; /* as the process itself sees it */
    int root;        /* its root folder, if it is not ours; -1: ours */
    uid_t user;
    int64_t started; /* seconds since 1970 */
};

struct generated {
    unsigned references;
    struct names *names;
    struct writer writer;
    uint64_t read;   /* bytes of the map */
    uint64_t looked; /* when; 0: never */
    struct generated_piece *pieces;
    size_t count;
    bool sorted;
    uint32_t next_order;
    char *dump;         /* path of the jit dump; NULL: there is none */
    uint64_t dump_read; /* bytes of it */
    bool dump_is_timed; /* its times are those of CLOCK_MONOTONIC */
    /* The last name of the dump's pieces by start, for those that move. */
    struct map_integers starts;
    const char **start_names;
    size_t start_count;
};

struct generated *generated_new(struct names *names) {
    struct generated *generated = base_allocate(sizeof *generated);
    *generated = (struct generated){.references = 1, .names = names, .writer.root = -1};
    return generated;
}

void generated_hold(struct generated *generated) {
    generated->references++;
}

bool generated_is_shared(const struct generated *generated) {
    return generated->references > 1;
}

void generated_release(struct generated *generated) {
    if (!generated || --generated->references)
        return;
    if (generated->writer.root >= 0)
        close(generated->writer.root);
    map_integers_free(&generated->starts);
    free(generated->start_names);
    free(generated->dump);
    free(generated->pieces);
    free(generated);
}

static void add_piece(struct generated *generated, uint64_t start, uint64_t end, uint64_t time,
                      const char *name, const char *file, uint32_t line) {
    if (generated->count >= PIECES_MAX || start >= end)
        return;
    struct generated_piece piece = {.start = start,
                                    .end = end,
                                    .name = names_keep(generated->names, name),
                                    .file = names_keep(generated->names, file),
                                    .line = line,
                                    .time = time,
                                    .order = generated->next_order++};
    const char *slash = file ? strrchr(file, '/') : NULL;
    piece.base = slash ? piece.file + (slash - file) + 1 : piece.file;
    if (slash) {
        char *folder = base_copy(file);
        folder[slash - file] = '\0';
        piece.folder = names_keep(generated->names, folder);
        free(folder);
    }
    *vector_push(generated->pieces, generated->count) = piece;
    generated->sorted = false;
}

void generated_add(struct generated *generated, uint64_t start, uint64_t end, const char *name,
                   const char *file, uint32_t line) {
    add_piece(generated, start, end, 0, name, file, line);
}

/* ------------------------------------------------------------------ lines */

/* Reads a number; false if there is none, or if it is too large. */
static bool read_number(const char **at, const char *end, uint64_t *number) {
    const char *text = *at;
    if (end - text > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        text += 2;
    const char *first = text;
    *number = 0;
    for (; text < end; text++) {
        int digit = *text >= '0' && *text <= '9'   ? *text - '0'
                    : *text >= 'a' && *text <= 'f' ? *text - 'a' + 10
                    : *text >= 'A' && *text <= 'F' ? *text - 'A' + 10
                                                   : -1;
        if (digit < 0)
            break;
        if (*number >> 60)
            return false;
        *number = *number << 4 | (uint64_t)digit;
    }
    *at = text;
    return text > first;
}

static void parse_line(struct generated *generated, const char *line, const char *end) {
    uint64_t start, size;
    char name[LINE_MAX_BYTES];
    if (!read_number(&line, end, &start) || line == end || *line++ != ' ' ||
        !read_number(&line, end, &size) || line == end || *line++ != ' ')
        return;
    if (!size || size > PIECE_BYTES_MAX || start >= ADDRESS_MAX || line == end)
        return;
    size_t length = (size_t)(end - line);
    if (length >= sizeof name || memchr(line, 0, length))
        return;
    memcpy(name, line, length);
    name[length] = 0;
    generated_add(generated, start, start + size, name, NULL, 0);
}

size_t generated_parse(struct generated *generated, const char *text, size_t size) {
    const char *at = text, *end = text + size, *line_end;
    while (at < end && (line_end = memchr(at, '\n', (size_t)(end - at)))) {
        parse_line(generated, at, line_end);
        at = line_end + 1;
    }
    return (size_t)(at - text);
}

/* ------------------------------------------------------------------ the file */

/* A field of a text of /proc, behind its name. */
static const char *find_field(const char *text, const char *name) {
    const char *found = strstr(text, name);
    return found ? found + strlen(name) : NULL;
}

static bool read_proc(pid_t pid, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

/* When a running process started, in seconds since 1970; 0: not known. */
static int64_t start_of(pid_t pid) {
    enum { FIELDS_BEFORE = 19 }; /* between the name in brackets and the time of start */
    char text[1024];
    unsigned long long ticks;
    struct timespec now, running;
    const char *at = read_proc(pid, "stat", text, sizeof text) ? strrchr(text, ')') : NULL;
    for (int i = 0; at && i <= FIELDS_BEFORE; i++)
        at = strchr(at + 1, ' ');
    if (!at || sscanf(at, "%llu", &ticks) != 1 || clock_gettime(CLOCK_REALTIME, &now) ||
        clock_gettime(CLOCK_BOOTTIME, &running))
        return 0;
    return (int64_t)now.tv_sec - (int64_t)running.tv_sec + (int64_t)ticks / sysconf(_SC_CLK_TCK);
}

/* The root folder of a process, if it is not that of this one. */
static int other_root(pid_t pid) {
    char path[64];
    struct stat theirs, ours;
    snprintf(path, sizeof path, "/proc/%d/root", (int)pid);
    if (stat(path, &theirs) || stat("/", &ours) ||
        (theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino))
        return -1;
    return fd_move_high(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

void generated_follow(struct generated *generated, pid_t writer, int64_t since) {
    char status[4096];
    struct writer *to = &generated->writer;
    if (to->root >= 0)
        close(to->root);
    *to = (struct writer){.pid = writer,
                          .inner_pid = writer,
                          .root = other_root(writer),
                          .user = geteuid(),
                          .started = start_of(writer)};
    if (!to->started)
        to->started = since;
    if (!read_proc(writer, "status", status, sizeof status))
        return;
    const char *user = find_field(status, "\nUid:"), *pids = find_field(status, "\nNSpid:");
    unsigned effective;
    if (user && sscanf(user, "%*u %u", &effective) == 1)
        to->user = effective;
    /* One number for each namespace, the innermost last. */
    const char *last = pids;
    for (const char *at = pids; at && *at && *at != '\n'; at++)
        if (*at == '\t' || *at == ' ')
            last = at;
    if (last)
        to->inner_pid = (pid_t)atoi(last + 1);
}

static bool is_trusted(const struct writer *writer, const struct stat *status) {
    return S_ISREG(status->st_mode) &&
           (status->st_uid == writer->user || status->st_uid == geteuid() || !status->st_uid) &&
           status->st_mtim.tv_sec >= writer->started - START_SLACK_SECONDS;
}

/* Opens a path as the writer sees it, if the file may be trusted; -1: it may not, or is not there.
 */
static int open_trusted(const struct writer *writer, const char *path, struct stat *status) {
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    struct open_how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_IN_ROOT};
    int fd = writer->root < 0 ? open(path, flags)
                              : (int)syscall(SYS_openat2, writer->root, path, &how, sizeof how);
    if (fd >= 0 && !fstat(fd, status) && is_trusted(writer, status))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void read_map(struct generated *generated, int fd) {
    char *text = base_allocate(READ_BYTES);
    for (;;) {
        ssize_t got = pread(fd, text, READ_BYTES, (off_t)generated->read);
        size_t used = got > 0 ? generated_parse(generated, text, (size_t)got) : 0;
        if (!used && got == READ_BYTES)
            used = READ_BYTES; /* an endless line */
        if (!used || generated->read > FILE_BYTES_MAX)
            break;
        generated->read += used;
    }
    free(text);
}

/* ------------------------------------------------------------------ jit dumps */

/* Where things are in a dump: in its head, in each record, and in records of code. */
enum {
    DUMP_MAGIC = 0x4a695444,
    DUMP_HEAD_SIZE_AT = 8,
    DUMP_FLAGS_AT = 32,
    DUMP_HEAD_BYTES = 40,
    DUMP_OTHER_CLOCK = 1, /* a flag: times are those of the processor */

    RECORD_SIZE_AT = 4,
    RECORD_TIME_AT = 8,
    RECORD_BYTES = 16,
    RECORD_LOADED = 0,
    RECORD_MOVED = 1,

    LOADED_START_AT = 32,
    LOADED_SIZE_AT = 40,
    LOADED_NAME_AT = 56,
    MOVED_FROM_AT = 32,
    MOVED_TO_AT = 40,
    MOVED_SIZE_AT = 48,
    MOVED_BYTES = 64,
};
#define RECORD_BYTES_MAX ((uint64_t)1 << 30)

static uint32_t half_at(const uint8_t *bytes, size_t at) {
    uint32_t half;
    memcpy(&half, bytes + at, sizeof half);
    return half;
}

static uint64_t word_at(const uint8_t *bytes, size_t at) {
    uint64_t word;
    memcpy(&word, bytes + at, sizeof word);
    return word;
}

static void add_dumped(struct generated *generated, uint64_t start, uint64_t size, uint64_t time,
                       const char *name) {
    bool is_new;
    if (!size || size > PIECE_BYTES_MAX || start >= ADDRESS_MAX || generated->count >= PIECES_MAX)
        return;
    add_piece(generated, start, start + size, generated->dump_is_timed ? time : 0, name, NULL, 0);
    uint32_t number = map_integers_add(&generated->starts, start, &is_new);
    if (is_new)
        vector_push(generated->start_names, generated->start_count);
    generated->start_names[number] = generated->pieces[generated->count - 1].name;
}

uint64_t generated_parse_record(struct generated *generated, const uint8_t *bytes, size_t size) {
    uint64_t whole = size < RECORD_BYTES ? 0 : half_at(bytes, RECORD_SIZE_AT);
    if (whole < RECORD_BYTES || whole > RECORD_BYTES_MAX)
        return 0;
    if (size > whole)
        size = (size_t)whole;
    uint32_t kind = half_at(bytes, 0);
    uint64_t time = word_at(bytes, RECORD_TIME_AT);
    if (kind == RECORD_LOADED && size > LOADED_NAME_AT && bytes[LOADED_NAME_AT] &&
        memchr(bytes + LOADED_NAME_AT, 0, size - LOADED_NAME_AT))
        add_dumped(generated, word_at(bytes, LOADED_START_AT), word_at(bytes, LOADED_SIZE_AT), time,
                   (const char *)bytes + LOADED_NAME_AT);
    if (kind == RECORD_MOVED && size >= MOVED_BYTES) {
        uint32_t from = map_integers_find(&generated->starts, word_at(bytes, MOVED_FROM_AT));
        if (from != MAP_NONE)
            add_dumped(generated, word_at(bytes, MOVED_TO_AT), word_at(bytes, MOVED_SIZE_AT), time,
                       generated->start_names[from]);
    }
    return whole;
}

bool generated_is_dump(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    return strncmp(name, "jit-", 4) == 0 && length > 9 && strcmp(name + length - 5, ".dump") == 0;
}

void generated_follow_dump(struct generated *generated, const char *path) {
    if (!generated->dump)
        generated->dump = base_copy(path);
}

static bool read_head(struct generated *generated, int fd) {
    uint8_t head[DUMP_HEAD_BYTES];
    if (pread(fd, head, sizeof head, 0) != sizeof head || half_at(head, 0) != DUMP_MAGIC ||
        half_at(head, DUMP_HEAD_SIZE_AT) < DUMP_HEAD_BYTES)
        return false;
    generated->dump_read = half_at(head, DUMP_HEAD_SIZE_AT);
    generated->dump_is_timed = !(word_at(head, DUMP_FLAGS_AT) & DUMP_OTHER_CLOCK);
    return true;
}

/* A record that is not whole yet is read the next time. */
static void read_dump(struct generated *generated) {
    uint8_t bytes[LOADED_NAME_AT + LINE_MAX_BYTES];
    struct stat status;
    int fd = open_trusted(&generated->writer, generated->dump, &status);
    if (fd < 0)
        return;
    bool is_good = generated->dump_read || read_head(generated, fd);
    while (is_good && generated->count < PIECES_MAX) {
        ssize_t got = pread(fd, bytes, sizeof bytes, (off_t)generated->dump_read);
        if (got < RECORD_BYTES ||
            generated->dump_read + half_at(bytes, RECORD_SIZE_AT) > (uint64_t)status.st_size)
            break;
        uint64_t whole = generated_parse_record(generated, bytes, (size_t)got);
        is_good = whole > 0;
        generated->dump_read += whole;
    }
    close(fd);
}

/* Reads what has been added to the map and the dump since the last look. */
static void look(struct generated *generated) {
    uint64_t now = clock_nanoseconds();
    struct stat status;
    char path[64];
    if (!generated->writer.pid || (generated->looked && now - generated->looked < LOOK_NANOSECONDS))
        return;
    generated->looked = now;
    if (generated->dump)
        read_dump(generated);
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)generated->writer.inner_pid);
    int fd = open_trusted(&generated->writer, path, &status);
    if (fd < 0)
        return;
    if ((uint64_t)status.st_size > generated->read)
        read_map(generated, fd);
    close(fd);
}

/* ------------------------------------------------------------------ finding */

/*
 * Pieces are sorted by start and searched as a tree: the middle of a part is its root. `reach` of
 * a root says how far the pieces of the part reach, so parts that end before an address are
 * skipped.
 */
static int compare(const void *left, const void *right) {
    const struct generated_piece *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static uint64_t set_reach(struct generated_piece *pieces, size_t count) {
    if (!count)
        return 0;
    struct generated_piece *root = &pieces[count / 2];
    uint64_t left = set_reach(pieces, count / 2);
    uint64_t right = set_reach(root + 1, count - count / 2 - 1);
    root->reach = root->end > left ? root->end : left;
    if (right > root->reach)
        root->reach = right;
    return root->reach;
}

static const struct generated_piece *latest(const struct generated_piece *pieces, size_t count,
                                            uint64_t address, uint64_t time,
                                            const struct generated_piece *found) {
    while (count) {
        const struct generated_piece *root = &pieces[count / 2];
        if (root->reach <= address)
            break;
        found = latest(pieces, count / 2, address, time, found);
        if (root->start > address)
            break;
        if (address < root->end && root->time <= time && (!found || root->order > found->order))
            found = root;
        pieces = root + 1;
        count -= count / 2 + 1;
    }
    return found;
}

const struct generated_piece *generated_find(struct generated *generated, uint64_t address) {
    return generated_find_at(generated, address, UINT64_MAX);
}

const struct generated_piece *generated_find_at(struct generated *generated, uint64_t address,
                                                uint64_t time) {
    look(generated);
    if (!generated->sorted && generated->count) {
        qsort(generated->pieces, generated->count, sizeof *generated->pieces, compare);
        set_reach(generated->pieces, generated->count);
        generated->sorted = true;
    }
    return latest(generated->pieces, generated->count, address, time, NULL);
}

void generated_check(const struct generated *generated) {
    assert(generated->references && generated->count <= PIECES_MAX);
    for (size_t i = 0; i < generated->count; i++) {
        const struct generated_piece *piece = &generated->pieces[i];
        assert(piece->start < piece->end && piece->name);
        assert(!generated->sorted || !i || compare(piece - 1, piece) < 0);
    }
}
