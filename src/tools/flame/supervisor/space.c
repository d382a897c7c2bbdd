#include "tools/flame/supervisor/space.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_view.h"
#include "base/search.h"
#include "base/text.h"
#include "base/vector.h"

#define ENTRY_BYTES 96

struct mapping {
    uint64_t start, end, offset;
    char *path;
    bool tried;     // to read its unwind information
    uint64_t entry; // where its file begins to run; 0: not known
};

// Invariant: mappings are sorted by address and do not overlap.
struct flame_space {
    struct mapping *mappings;
    size_t count;
    struct unwind_space modules; // state NULL: not open
};

struct flame_space *flame_space_new(void) {
    struct flame_space *space = base_allocate(sizeof *space);
    *space = (struct flame_space){0};
    return space;
}

void flame_space_rest(struct flame_space *space) {
    if (space->modules.state)
        unwind_space_close(&space->modules);
    for (size_t i = 0; i < space->count; i++)
        space->mappings[i].tried = false;
}

void flame_space_free(struct flame_space *space) {
    flame_space_rest(space);
    for (size_t i = 0; i < space->count; i++)
        free(space->mappings[i].path);
    free(space->mappings);
    free(space);
}

static void insert(struct flame_space *space, size_t at, struct mapping mapping) {
    struct mapping *last = vector_push(space->mappings, space->count);
    memmove(&space->mappings[at + 1], &space->mappings[at],
            (size_t)(last - &space->mappings[at]) * sizeof *last);
    space->mappings[at] = mapping;
}

struct flame_space *flame_space_copy(const struct flame_space *space) {
    struct flame_space *copy = flame_space_new();
    for (size_t i = 0; i < space->count; i++) {
        struct mapping mapping = space->mappings[i];
        mapping.path = base_copy(mapping.path);
        mapping.tried = false;
        insert(copy, i, mapping);
    }
    return copy;
}

// Takes [start, end) out of what is mapped, parts of mappings included.
static void cut(struct flame_space *space, uint64_t start, uint64_t end) {
    for (size_t i = 0; i < space->count; i++) {
        struct mapping *old = &space->mappings[i];
        if (old->end <= start || old->start >= end)
            continue;
        if (old->start < start && old->end > end) {
            struct mapping right = *old;
            right.offset += end - old->start;
            right.start = end;
            right.path = base_copy(old->path);
            old->end = start;
            insert(space, i + 1, right);
            return;
        }
        if (old->start < start) {
            old->end = start;
        } else if (old->end > end) {
            old->offset += end - old->start;
            old->start = end;
        } else {
            free(old->path);
            memmove(old, old + 1, (space->count - i - 1) * sizeof *old);
            space->count--;
            i--;
        }
    }
}

void flame_space_map(struct flame_space *space, const struct sampler_mapping *mapping) {
    if (mapping->start >= mapping->end)
        return;
    cut(space, mapping->start, mapping->end);
    if (space->modules.state)
        unwind_space_remove(&space->modules, mapping->start, mapping->end);
    size_t at = 0;
    while (at < space->count && space->mappings[at].start < mapping->start)
        at++;
    insert(space, at,
           (struct mapping){.start = mapping->start,
                            .end = mapping->end,
                            .offset = mapping->offset,
                            .path = base_copy(mapping->path)});
}

// ---- modules ----

// A file in memory, to be unmapped; NULL: there is none.
static void *map_file(const char *path, size_t *size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat status;
    void *bytes = MAP_FAILED;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
        *size = (size_t)status.st_size;
        bytes = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    return bytes == MAP_FAILED ? NULL : bytes;
}

static bool is_file(const char *path) {
    return path[0] == '/' && path[1] != '/';
}

// What is done with the bytes of a file. The target may cut the file short meanwhile, so that
// reading them raises SIGBUS; then nothing is found.
struct reading {
    const uint8_t *bytes;
    size_t size;
    struct flame_space *space;
    struct mapping *mapping;               // to be added to the space
    const struct sampler_mapping *sampled; // of which the first part is sought
    struct sampler_mapping *part;
    bool found;
};

static void find_first_part(void *context) {
    struct reading *reading = context;
    const struct sampler_mapping *sampled = reading->sampled;
    struct elf_view view;
    Elf64_Phdr header;
    uint64_t bias;
    if (!elf_view_open(&view, reading->bytes, reading->size) ||
        !elf_view_bias(&view, sampled->start, sampled->offset, &bias))
        return;
    for (size_t i = 0; !reading->found && elf_view_segment(&view, i, &header); i++) {
        uint64_t start = bias + header.p_vaddr;
        uint64_t end = start + ((header.p_filesz + 4095) & ~(uint64_t)4095);
        reading->found = header.p_type == PT_LOAD && !(header.p_flags & PF_X) &&
                         header.p_offset == 0 && start < end && end <= sampled->start;
        *reading->part = (struct sampler_mapping){sampled->pid, start, end, 0, sampled->path};
    }
}

bool flame_space_first_part(const struct sampler_mapping *mapping, struct sampler_mapping *part) {
    struct reading reading = {.sampled = mapping, .part = part};
    void *bytes = is_file(mapping->path) ? map_file(mapping->path, &reading.size) : NULL;
    if (!bytes)
        return false;
    reading.bytes = bytes;
    bool whole = guard_run(find_first_part, &reading);
    munmap(bytes, reading.size);
    return whole && reading.found;
}

static void add_module(struct flame_space *space, struct mapping *mapping, const uint8_t *bytes,
                       size_t size) {
    uint64_t bias;
    struct elf_view view;
    if (!elf_view_open(&view, bytes, size) ||
        !elf_view_bias(&view, mapping->start, mapping->offset, &bias))
        return;
    mapping->entry = view.header.e_entry ? bias + view.header.e_entry : 0;
    unwind_space_add_file(&space->modules, bytes, size, bias, false);
}

// The kernel maps the same code into every process; ours is a copy of the target's.
static void add_vdso(struct flame_space *space, struct mapping *mapping) {
    const uint8_t *bytes = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
    if (bytes)
        add_module(space, mapping, bytes, mapping->end - mapping->start);
}

static void add_read(void *context) {
    struct reading *reading = context;
    add_module(reading->space, reading->mapping, reading->bytes, reading->size);
}

static void add_file(struct flame_space *space, struct mapping *mapping) {
    struct reading reading = {.space = space, .mapping = mapping};
    void *bytes = map_file(mapping->path, &reading.size);
    if (!bytes)
        return;
    reading.bytes = bytes;
    guard_run(add_read, &reading);
    munmap(bytes, reading.size);
}

static struct mapping *find(const struct flame_space *space, uint64_t address) {
    struct mapping *mappings = space->mappings;
    size_t i = search_first(at, 0, space->count, mappings[at].end > address);
    return i < space->count && mappings[i].start <= address ? &mappings[i] : NULL;
}

const char *flame_space_file(const struct flame_space *space, uint64_t address, uint64_t *offset) {
    const struct mapping *mapping = find(space, address);
    if (!mapping || !is_file(mapping->path))
        return NULL;
    *offset = address - mapping->start + mapping->offset;
    return mapping->path;
}

static void need_module(struct flame_space *space, uint64_t address) {
    struct mapping *mapping = find(space, address);
    if (!mapping || mapping->tried)
        return;
    mapping->tried = true;
    if (is_file(mapping->path))
        add_file(space, mapping);
    else if (strcmp(mapping->path, "[vdso]") == 0)
        add_vdso(space, mapping);
}

// ---- walking ----

struct walk {
    struct flame_space *space;
    const struct sampler_sample *sample;
};

static bool read_word(void *context, uint64_t address, uint64_t *word) {
    const struct walk *walk = context;
    uint64_t at = address - walk->sample->registers.value[UNWIND_RSP];
    if (at >= walk->sample->stack_size || walk->sample->stack_size - at < sizeof *word)
        return false;
    memcpy(word, &walk->sample->stack[at], sizeof *word);
    return true;
}

static bool is_code(void *context, uint64_t address) {
    const struct walk *walk = context;
    return find(walk->space, address) != NULL;
}

// Where the dynamic linker begins to run, and what follows, is code without unwind information.
static bool is_entry(const struct flame_space *space, uint64_t address) {
    const struct mapping *mapping = find(space, address);
    return mapping && mapping->entry && address >= mapping->entry &&
           address < mapping->entry + ENTRY_BYTES;
}

size_t flame_space_walk(struct flame_space *space, const struct sampler_sample *sample,
                        uint64_t *addresses, unsigned *end) {
    if (!sample->has_registers) {
        *end = FLAME_END_NO_USER;
        return 0;
    }
    if (!space->modules.state && unwind_space_open(&space->modules) != UNWIND_OK) {
        *end = UNWIND_END_NO_RULE;
        return 0;
    }
    struct walk walk = {space, sample};
    struct unwind_memory memory = {.read = read_word, .is_code = is_code, .context = &walk};
    struct unwind_frame frame = {.registers = sample->registers, .exact = true};
    size_t count = 0;
    enum unwind_end why = UNWIND_END_COUNT;
    while (why == UNWIND_END_COUNT && count < FLAME_FRAMES_MAX) {
        uint64_t address = frame.registers.value[UNWIND_PC] - !frame.exact;
        addresses[count++] = address;
        need_module(space, address);
        why = unwind_step(&space->modules, &frame, &memory);
    }
    if (why == UNWIND_END_NO_RULE && is_entry(space, addresses[count - 1]))
        *end = UNWIND_END_BOTTOM;
    else if (why == UNWIND_END_UNREADABLE && sample->stack_full)
        *end = FLAME_END_STACK_BYTES;
    else
        *end = why == UNWIND_END_COUNT ? UNWIND_END_LIMIT : why;
    return count;
}

const char *flame_end_text(unsigned end) {
    if (end == FLAME_END_STACK_BYTES)
        return "stack larger than --stack-bytes";
    if (end == FLAME_END_NO_USER)
        return "no user state, in exec or exit";
    return unwind_end_text((enum unwind_end)end);
}

bool flame_end_is_broken(unsigned end) {
    return end != UNWIND_END_BOTTOM && end != FLAME_END_NO_USER;
}
