#include "attach/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/search.h"
#include "base/text.h"
#include "base/vector.h"

#define PAGE          SNAPSHOT_PAGE
#define PRESENT       (1ull << 63)
#define SWAPPED       (1ull << 62)
#define FLAGS         4096       // pages that the kernel is asked about at once
#define PIECES        512        // runs that are read at once
#define PIECE_MOST    (1u << 30) // bytes of a run
#define SPARE         (4ull << 20)
#define MEMORY_MARGIN (64ull << 20) // that a copy leaves to others

// ---- mappings ----------------------------------------------------------------------------------

static void forget_mappings(struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->mapping_count; i++)
        free((char *)snapshot->mappings[i].path);
    snapshot->mapping_count = 0;
}

static bool read_mappings(struct snapshot *snapshot) {
    struct maps_reader reader;
    struct maps_mapping line;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/maps", snapshot->pid);
    forget_mappings(snapshot);
    maps_reader_open(&reader, path);
    while (maps_reader_next(&reader, &line)) {
        line.path = base_copy(line.path);
        line.line = NULL;
        *vector_push(snapshot->mappings, snapshot->mapping_count) = line;
    }
    maps_reader_close(&reader);
    return snapshot->mapping_count > 0;
}

static bool is_device(const char *path) {
    return strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0 &&
           strncmp(path, "/dev/zero", 9) != 0;
}

static bool is_copied(const struct maps_mapping *mapping) {
    return mapping->readable && mapping->writable && !is_device(mapping->path) &&
           strncmp(mapping->path, "/memfd:quern-", 13) != 0 &&
           strncmp(mapping->path, "[v", 2) != 0 &&
           mapping->end - mapping->start <= SNAPSHOT_MAPPING_MOST;
}

const struct maps_mapping *snapshot_mapping(const struct snapshot *snapshot, uint64_t address) {
    const struct maps_mapping *mappings = snapshot->mappings;
    size_t count = snapshot->mapping_count;
    size_t i = search_first(at, 0, count, mappings[at].end > address);
    return i < count && mappings[i].start <= address ? &mappings[i] : NULL;
}

// ---- touched pages -----------------------------------------------------------------------------

static void add_page(struct snapshot *snapshot, uint64_t address, bool is_swapped) {
    struct snapshot_run *last =
        snapshot->run_count ? &snapshot->runs[snapshot->run_count - 1] : NULL;
    if (last && last->end == address && last->is_swapped == is_swapped &&
        last->end - last->start < PIECE_MOST)
        last->end += PAGE;
    else
        *vector_push(snapshot->runs, snapshot->run_count) =
            (struct snapshot_run){address, address + PAGE, NULL, is_swapped};
}

static bool find_touched(struct snapshot *snapshot, int pagemap,
                         const struct maps_mapping *mapping) {
    uint64_t flags[FLAGS];
    for (uint64_t page = mapping->start / PAGE, end = mapping->end / PAGE; page < end;) {
        size_t count = end - page < FLAGS ? (size_t)(end - page) : FLAGS;
        if (pread(pagemap, flags, count * 8, (off_t)(page * 8)) != (ssize_t)(count * 8))
            return false;
        for (size_t i = 0; i < count; i++)
            if (flags[i] & (PRESENT | SWAPPED))
                add_page(snapshot, (page + i) * PAGE, !(flags[i] & PRESENT));
        page += count;
    }
    return true;
}

// Finds the runs. False with errno: the process cannot be read.
static bool find_runs(struct snapshot *snapshot) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/pagemap", snapshot->pid);
    snapshot->run_count = 0;
    snapshot->is_partial = false;
    if (!read_mappings(snapshot)) {
        errno = errno ? errno : ESRCH;
        return false;
    }
    int pagemap = open(path, O_RDONLY | O_CLOEXEC);
    if (pagemap < 0)
        return false;
    bool is_fine = true;
    for (size_t i = 0; i < snapshot->mapping_count && is_fine; i++) {
        const struct maps_mapping *mapping = &snapshot->mappings[i];
        snapshot->is_partial |= mapping->readable && mapping->writable &&
                                mapping->end - mapping->start > SNAPSHOT_MAPPING_MOST;
        if (is_copied(mapping))
            is_fine = find_touched(snapshot, pagemap, mapping);
    }
    int error = errno;
    close(pagemap);
    errno = error;
    return is_fine;
}

// ---- copying -----------------------------------------------------------------------------------

static bool add_buffer(struct snapshot *snapshot, size_t size) {
    // Its pages are there before the process stops.
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED)
        return false;
    *vector_push(snapshot->buffers, snapshot->buffer_count) =
        (struct snapshot_buffer){bytes, size, 0};
    return true;
}

static uint8_t *take_buffer(struct snapshot *snapshot, size_t size) {
    for (size_t i = 0; i < snapshot->buffer_count; i++) {
        struct snapshot_buffer *buffer = &snapshot->buffers[i];
        if (buffer->size - buffer->used >= size) {
            buffer->used += size;
            return buffer->bytes + buffer->used - size;
        }
    }
    return add_buffer(snapshot, size + SPARE) ? take_buffer(snapshot, size) : NULL;
}

// A page that cannot be read (behind the end of a file, say) holds zeros.
static bool copy_one(int pid, const struct snapshot_run *run) {
    uint64_t size = run->end - run->start, at = 0;
    while (at < size) {
        struct iovec local = {(void *)(run->bytes + at), size - at};
        struct iovec remote = {(void *)(run->start + at), size - at};
        ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
        if (got < 0 && errno != EFAULT)
            return false;
        at += got > 0 ? (uint64_t)got : 0;
        if (at < size && (got <= 0 || at % PAGE)) {
            uint64_t next = (at & -PAGE) + PAGE;
            memset((void *)(run->bytes + at), 0, next - at);
            at = next;
        }
    }
    return true;
}

static bool copy_some(int pid, const struct snapshot_run *runs, size_t count) {
    struct iovec local[PIECES] = {0}, remote[PIECES] = {0};
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size_t one = runs[i].end - runs[i].start;
        local[i] = (struct iovec){(void *)runs[i].bytes, one};
        remote[i] = (struct iovec){(void *)runs[i].start, one};
        size += one;
    }
    ssize_t got = process_vm_readv(pid, local, count, remote, count, 0);
    bool is_fine = got == (ssize_t)size;
    for (size_t i = 0; !is_fine && i < count; i++)
        if (!copy_one(pid, &runs[i]))
            return false;
    return true;
}

static bool copy_runs(struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->buffer_count; i++)
        snapshot->buffers[i].used = 0;
    for (size_t i = 0; i < snapshot->run_count; i++) {
        struct snapshot_run *run = &snapshot->runs[i];
        run->bytes = take_buffer(snapshot, run->end - run->start);
        if (!run->bytes)
            return false;
    }
    for (size_t i = 0; i < snapshot->run_count;) {
        size_t count = 0, size = 0;
        while (count < PIECES && i + count < snapshot->run_count && size < PIECE_MOST)
            size += snapshot->runs[i + count].end - snapshot->runs[i + count].start, count++;
        if (!copy_some(snapshot->pid, snapshot->runs + i, count))
            return false;
        i += count;
    }
    return true;
}

// ---- the whole ---------------------------------------------------------------------------------

static uint64_t available_memory(void) {
    unsigned long long kilobytes = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu", &kilobytes) == 1)
            break;
    if (file)
        fclose(file);
    return kilobytes << 10;
}

char *snapshot_prepare(struct snapshot *snapshot, int pid) {
    *snapshot = (struct snapshot){.pid = pid};
    struct text problem = {0};
    errno = 0;
    if (!find_runs(snapshot)) {
        text_format(&problem, "its memory cannot be read (%s)", strerror(errno));
        return text_take(&problem);
    }
    uint64_t size = 0, available = available_memory();
    for (size_t i = 0; i < snapshot->run_count; i++)
        size += snapshot->runs[i].end - snapshot->runs[i].start;
    if (available && size + MEMORY_MARGIN > available) {
        text_format(&problem,
                    "a copy of its memory takes %llu MB, and %llu MB are available on this machine",
                    (unsigned long long)(size >> 20), (unsigned long long)(available >> 20));
        return text_take(&problem);
    }
    size += size / 32 + SPARE;
    if (add_buffer(snapshot, (size_t)(size & -PAGE)))
        return NULL;
    text_format(&problem, "there is no memory for a copy of its memory (%llu MB)",
                (unsigned long long)(size >> 20));
    return text_take(&problem);
}

static void forget_threads(struct snapshot *snapshot) {
    free(snapshot->threads.threads);
    snapshot->threads = (struct freeze){0};
}

static void keep_threads(struct snapshot *snapshot, const struct freeze *freeze) {
    size_t size = freeze->count * sizeof *freeze->threads;
    forget_threads(snapshot);
    snapshot->threads.threads = base_allocate(size);
    memcpy(snapshot->threads.threads, freeze->threads, size);
    snapshot->threads.count = freeze->count;
}

enum snapshot_outcome snapshot_take(struct snapshot *snapshot, snapshot_look *look, void *context) {
    struct freeze freeze;
    enum snapshot_outcome outcome = SNAPSHOT_NOT_NOW;
    if (!freeze_begin(&freeze, snapshot->pid))
        return SNAPSHOT_FAILED;
    errno = 0;
    if (look(context))
        outcome = find_runs(snapshot) && copy_runs(snapshot) ? SNAPSHOT_TAKEN : SNAPSHOT_FAILED;
    int error = errno;
    keep_threads(snapshot, &freeze);
    snapshot->pause = freeze_end(&freeze);
    errno = error;
    return outcome;
}

void snapshot_free(struct snapshot *snapshot) {
    forget_mappings(snapshot);
    forget_threads(snapshot);
    for (size_t i = 0; i < snapshot->buffer_count; i++)
        munmap(snapshot->buffers[i].bytes, snapshot->buffers[i].size);
    free(snapshot->buffers);
    free(snapshot->mappings);
    free(snapshot->runs);
    *snapshot = (struct snapshot){0};
}

// ---- looking at the copy -----------------------------------------------------------------------

size_t snapshot_run_after(const struct snapshot *snapshot, uint64_t address) {
    return search_first(at, 0, snapshot->run_count, snapshot->runs[at].end > address);
}

// Whether all of it is in memory that was to be copied.
static bool is_covered(const struct snapshot *snapshot, uint64_t start, uint64_t end) {
    while (start < end) {
        const struct maps_mapping *mapping = snapshot_mapping(snapshot, start);
        if (!mapping || !is_copied(mapping))
            return false;
        start = mapping->end;
    }
    return true;
}

bool snapshot_read(const struct snapshot *snapshot, uint64_t address, void *to, size_t size) {
    uint64_t end = address + size;
    size_t number = snapshot_run_after(snapshot, address);
    const struct snapshot_run *run = &snapshot->runs[number];
    if (end < address)
        return false;
    if (number < snapshot->run_count && run->start <= address && end <= run->end) {
        memcpy(to, run->bytes + (address - run->start), size);
        return true;
    }
    if (!is_covered(snapshot, address, end))
        return false;
    memset(to, 0, size);
    for (; number < snapshot->run_count && run->start < end; number++, run++) {
        uint64_t from = run->start > address ? run->start : address;
        uint64_t until = run->end < end ? run->end : end;
        memcpy((uint8_t *)to + (from - address), run->bytes + (from - run->start), until - from);
    }
    return true;
}

bool snapshot_word(const struct snapshot *snapshot, uint64_t address, uint64_t *word) {
    return snapshot_read(snapshot, address, word, sizeof *word);
}

uint64_t snapshot_resident(const struct snapshot *snapshot, uint64_t start, uint64_t end) {
    uint64_t sum = 0;
    for (size_t i = snapshot_run_after(snapshot, start); i < snapshot->run_count; i++) {
        const struct snapshot_run *run = &snapshot->runs[i];
        if (run->start >= end)
            break;
        uint64_t from = run->start > start ? run->start : start;
        uint64_t until = run->end < end ? run->end : end;
        sum += run->is_swapped ? 0 : until - from;
    }
    return sum;
}
