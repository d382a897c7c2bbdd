#include "attach/allocator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "attach/objects.h"
#include "base/text.h"
#include "base/vector.h"

#define DATA_MOST   (16u << 20) // bytes of an object's data that are searched
#define TEXT_MOST   (64u << 20) // bytes of an object that are searched for its version
#define ARENAS_MOST 100000u

static bool read_live(int pid, uint64_t address, void *to, size_t size) {
    struct iovec local = {to, size};
    struct iovec remote = {(void *)address, size};
    return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

// ---- which library -----------------------------------------------------------------------------

struct object {
    char *path;
    uint64_t inode;
    struct maps_mapping first; // its path is `path`
    uint64_t data_start, data_end;
    struct range {
        uint64_t start, end;
    } * constants; // readable, not writable
    size_t constant_count;
};

struct objects {
    struct object *at;
    size_t count;
};

static struct object *object_of(struct objects *objects, const struct maps_mapping *line) {
    for (size_t i = objects->count; i-- > 0;)
        if (objects->at[i].inode == line->inode && strcmp(objects->at[i].path, line->path) == 0)
            return &objects->at[i];
    struct object *object = vector_push(objects->at, objects->count);
    *object = (struct object){.path = base_copy(line->path), .inode = line->inode, .first = *line};
    object->first.path = object->path;
    return object;
}

// Files that are mapped, in order of address.
static struct objects list_objects(int pid) {
    struct objects objects = {0};
    struct maps_reader reader;
    struct maps_mapping line;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    maps_reader_open(&reader, path);
    while (maps_reader_next(&reader, &line)) {
        if (!line.inode || line.path[0] != '/' || line.shared)
            continue;
        struct object *object = object_of(&objects, &line);
        if (line.writable) {
            if (!object->data_end)
                object->data_start = line.start;
            object->data_end = line.end;
        } else if (line.readable) {
            *vector_push(object->constants, object->constant_count) =
                (struct range){line.start, line.end};
        }
    }
    maps_reader_close(&reader);
    return objects;
}

static void free_objects(struct objects *objects) {
    for (size_t i = 0; i < objects->count; i++) {
        free(objects->at[i].path);
        free(objects->at[i].constants);
    }
    free(objects->at);
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

static bool is_glibc(const struct object *object) {
    const char *name = object_name(object->path);
    return begins(name, "libc.so.6") || begins(name, "libc-2.");
}

static bool is_musl(const struct object *object) {
    const char *name = object_name(object->path);
    return begins(name, "ld-musl-") || begins(name, "libc.musl-") || strcmp(name, "libc.so") == 0;
}

// Objects that define malloc and call libc's: they change nothing about where blocks lie.
static bool passes_on(const struct object *object) {
    static const char *const names[] = {"ld-linux-x86-64.so", "ld-2.", "quern-recorder.so",
                                        "libheaptrack_preload.so"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (begins(object_name(object->path), names[i]))
            return true;
    return false;
}

static char *other_malloc(int pid, const struct objects *objects, const struct object *libc) {
    struct text problem = {0};
    for (size_t i = 0; i < objects->count; i++) {
        const struct object *object = &objects->at[i];
        if (object == libc || passes_on(object) || !object->data_end)
            continue;
        int fd = object_open(pid, &object->first);
        bool defines = fd >= 0 && object_defines(fd, "malloc");
        if (fd >= 0)
            close(fd);
        if (!defines)
            continue;
        text_format(&problem,
                    "%s has a malloc of its own, and only glibc's heap can be counted from outside "
                    "so far; run the program under quern heap instead",
                    object_name(object->path));
        return text_take(&problem);
    }
    return NULL;
}

// ---- its version -------------------------------------------------------------------------------

static unsigned version_in(const uint8_t *bytes, size_t size) {
    static const char before[] = "stable release version 2.";
    const uint8_t *at = memmem(bytes, size, before, sizeof before - 1);
    if (!at || size - (size_t)(at - bytes) < sizeof before + 2)
        return 0;
    unsigned minor = 0;
    for (at += sizeof before - 1; *at >= '0' && *at <= '9' && minor < 100; at++)
        minor = minor * 10 + (*at - '0');
    return 200 + minor;
}

static unsigned version_of(int pid, const struct object *object) {
    unsigned version = 0;
    for (size_t i = 0; i < object->constant_count && !version; i++) {
        size_t size = object->constants[i].end - object->constants[i].start;
        if (size > TEXT_MOST)
            continue;
        uint8_t *bytes = base_allocate(size);
        if (read_live(pid, object->constants[i].start, bytes, size))
            version = version_in(bytes, size);
        free(bytes);
    }
    return version;
}

char *allocator_text(const struct allocator *allocator) {
    struct text text = {0};
    text_string(&text, "glibc");
    if (allocator->version)
        text_format(&text, " %u.%u", allocator->version / 100, allocator->version % 100);
    return text_take(&text);
}

// ---- its main arena ----------------------------------------------------------------------------

// Whether each list of the record at `address` is empty and leads to itself, or leads elsewhere at
// both ends; and at least one is empty.
static bool has_lists(const struct arena_record *record, uint64_t address) {
    unsigned empty = 0;
    for (unsigned i = 0; i < BINS; i++) {
        uint64_t bin = arena_bin(address, i), first = record->bins[2 * i];
        uint64_t last = record->bins[2 * i + 1];
        if (!first || !last || first % 8 || last % 8 || (first == bin) != (last == bin))
            return false;
        empty += first == bin;
    }
    return empty;
}

static bool is_arena(const struct arena_record *record, uint64_t address) {
    return record->top && record->top % 8 == 0 && record->next && record->flags <= 3 &&
           record->system_size <= record->system_most && has_lists(record, address);
}

// Follows the ring of arenas. False: it does not lead back.
static bool is_ring(int pid, uint64_t first) {
    uint64_t at = first;
    for (unsigned i = 0; i < ARENAS_MOST; i++) {
        if (!read_live(pid, at + offsetof(struct arena_record, next), &at, sizeof at))
            return false;
        if (at == first)
            return true;
    }
    return false;
}

// How many main arenas the object's data holds; the last of them is kept.
static unsigned find_arena(struct allocator *allocator, const struct object *object) {
    uint64_t size = object->data_end - object->data_start;
    unsigned found = 0;
    if (!object->data_end || size > DATA_MOST || size < sizeof(struct arena_record))
        return 0;
    uint8_t *bytes = base_allocate(size);
    if (read_live(allocator->pid, object->data_start, bytes, size))
        for (uint64_t at = 0; at + sizeof(struct arena_record) <= size; at += 8) {
            const struct arena_record *record = (const void *)(bytes + at);
            if (!is_arena(record, object->data_start + at) ||
                !is_ring(allocator->pid, object->data_start + at))
                continue;
            found++;
            allocator->main_arena = object->data_start + at;
            allocator->data_start = object->data_start;
            allocator->data_end = object->data_end;
        }
    free(bytes);
    return found;
}

// ---- the whole ---------------------------------------------------------------------------------

static const struct object *find_libc(const struct objects *objects, bool *is_musl_there) {
    const struct object *libc = NULL;
    for (size_t i = 0; i < objects->count; i++) {
        *is_musl_there |= is_musl(&objects->at[i]);
        if (is_glibc(&objects->at[i]) && !libc)
            libc = &objects->at[i];
    }
    return libc;
}

// The program itself, if it is static, is the only object there is.
static char *choose(struct allocator *allocator, const struct objects *objects) {
    struct text problem = {0};
    bool is_musl_there = false;
    const struct object *libc = find_libc(objects, &is_musl_there);
    if (!objects->count)
        return base_copy("its mappings cannot be read");
    if (!libc && is_musl_there)
        return base_copy("it uses musl, and only glibc's heap can be counted from outside so far");
    char *other = libc ? other_malloc(allocator->pid, objects, libc) : NULL;
    if (other)
        return other;
    allocator->version = version_of(allocator->pid, libc ? libc : &objects->at[0]);
    if (allocator->version &&
        (allocator->version < GLIBC_OLDEST || allocator->version > GLIBC_NEWEST)) {
        text_format(&problem,
                    "it uses glibc %u.%u; the heaps of glibc %u.%u to %u.%u can be counted so far",
                    allocator->version / 100, allocator->version % 100, GLIBC_OLDEST / 100,
                    GLIBC_OLDEST % 100, GLIBC_NEWEST / 100, GLIBC_NEWEST % 100);
        return text_take(&problem);
    }
    unsigned found = 0;
    for (size_t i = 0; i < objects->count; i++)
        if (libc ? is_glibc(&objects->at[i]) : i == 0)
            found += find_arena(allocator, &objects->at[i]);
    if (found == 1)
        return NULL;
    if (found)
        return base_copy("it has several copies of libc, each with a heap of its own; that is not "
                         "supported yet");
    return base_copy(libc ? "it has not used malloc yet, or its libc is not one that Quern knows"
                          : "it is static, and glibc's malloc is not found in it");
}

char *allocator_find(struct allocator *allocator, int pid) {
    *allocator = (struct allocator){.pid = pid};
    struct objects objects = list_objects(pid);
    char *problem = choose(allocator, &objects);
    free_objects(&objects);
    return problem;
}

bool allocator_is_quiet(void *context) {
    const struct allocator *allocator = context;
    uint64_t at = allocator->main_arena;
    for (unsigned i = 0; i < ARENAS_MOST; i++) {
        int32_t mutex;
        if (!read_live(allocator->pid, at, &mutex, sizeof mutex) || mutex)
            return false;
        if (!read_live(allocator->pid, at + offsetof(struct arena_record, next), &at, sizeof at))
            return false;
        if (at == allocator->main_arena)
            return true;
    }
    return false;
}

bool allocator_mapped(const struct allocator *allocator, const struct snapshot *snapshot,
                      uint64_t break_start, uint64_t *blocks, uint64_t *bytes) {
    unsigned found = 0;
    uint64_t count_at =
        allocator->version && allocator->version < 235 ? PARAMETERS_COUNT_OLD : PARAMETERS_COUNT;
    for (uint64_t at = allocator->data_start + 64; at + 24 <= allocator->data_end; at += 8) {
        uint64_t words[3];
        int32_t count;
        if (!snapshot_read(snapshot, at, words, sizeof words) || words[0] != break_start ||
            !words[1] || words[1] > CACHE_LISTS || words[2] > CACHE_LARGEST)
            continue;
        if (!snapshot_read(snapshot, at - count_at, &count, sizeof count) || count < 0 ||
            !snapshot_word(snapshot, at - PARAMETERS_MAPPED, bytes))
            continue;
        *blocks = (uint64_t)count;
        found++;
    }
    return found == 1;
}
