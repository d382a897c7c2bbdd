#include "symbols/processes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vector.h"

enum { BUCKETS = 1024, MOST_UNMAPPED = 4096, MOST_CANDIDATES = 16 };
#define PAGE 4096u

struct processes {
    struct process *buckets[BUCKETS];
    struct files *files;
    bool keep_unmapped;
};

struct processes *processes_new(struct files *files, bool keep_unmapped) {
    struct processes *processes = calloc(1, sizeof *processes);
    if (!processes)
        return NULL;
    processes->files = files;
    processes->keep_unmapped = keep_unmapped;
    return processes;
}

static struct process **bucket_of(struct processes *processes, pid_t pid) {
    return &processes->buckets[(unsigned)pid % BUCKETS];
}

struct process *processes_find(struct processes *processes, pid_t pid) {
    for (struct process *process = *bucket_of(processes, pid); process; process = process->next)
        if (process->pid == pid)
            return process;
    return NULL;
}

static struct process *find_or_make(struct processes *processes, pid_t pid) {
    struct process *process = processes_find(processes, pid);
    if (process)
        return process;
    process = calloc(1, sizeof *process);
    if (!process)
        return NULL;
    process->pid = pid;
    process->changes = 1;
    struct process **bucket = bucket_of(processes, pid);
    process->next = *bucket;
    *bucket = process;
    return process;
}

void processes_end(struct processes *processes, pid_t pid) {
    struct process **link = bucket_of(processes, pid);
    while (*link && (*link)->pid != pid)
        link = &(*link)->next;
    struct process *process = *link;
    if (!process)
        return;
    *link = process->next;
    for (size_t i = 0; i < process->count; i++)
        files_release(processes->files, process->mappings[i].file);
    for (size_t i = 0; i < process->unmapped_count; i++)
        files_release(processes->files, process->unmapped[i].file);
    for (size_t i = 0; i < process->generated_count; i++)
        generated_release(process->generated[i]);
    free(process->mappings);
    free(process->unmapped);
    free(process);
}

void processes_free(struct processes *processes) {
    if (!processes)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (processes->buckets[i])
            processes_end(processes, processes->buckets[i]->pid);
    free(processes);
}

/* The number of mappings that start at or below address. */
static size_t count_up_to(const struct process *process, uint64_t address) {
    return search_first(at, 0, process->count, process->mappings[at].start > address);
}

/* Takes over a reference. */
static void insert(struct process *process, struct mapping mapping) {
    size_t at = count_up_to(process, mapping.start), behind = process->count - at;
    vector_push(process->mappings, process->count);
    memmove(&process->mappings[at + 1], &process->mappings[at], behind * sizeof *process->mappings);
    process->mappings[at] = mapping;
}

/* Programs load and unload the same plug-in again and again: it is kept once. */
static void keep(struct processes *processes, struct process *process, struct mapping mapping) {
    for (size_t i = 0; i < process->unmapped_count; i++) {
        struct mapping *old = &process->unmapped[i];
        if (old->start == mapping.start && old->end == mapping.end &&
            old->offset == mapping.offset && old->file == mapping.file) {
            memmove(old, old + 1, (process->unmapped_count - i - 1) * sizeof *old);
            old = &process->unmapped[process->unmapped_count - 1];
            *old = mapping;
            return;
        }
    }
    if (!process->unmapped)
        process->unmapped = calloc(MOST_UNMAPPED, sizeof *process->unmapped);
    if (!process->unmapped)
        return;
    if (process->unmapped_count == MOST_UNMAPPED) {
        files_release(processes->files, process->unmapped[0].file);
        memmove(process->unmapped, process->unmapped + 1,
                --process->unmapped_count * sizeof *process->unmapped);
    }
    files_hold(mapping.file);
    process->unmapped[process->unmapped_count++] = mapping;
}

static void remove_range(struct processes *processes, struct process *process, uint64_t start,
                         uint64_t end, bool keep_removed) {
    size_t first = count_up_to(process, start);
    if (first && process->mappings[first - 1].end > start)
        first--;
    size_t last = first;
    struct mapping left = {0}, right = {0};
    for (; last < process->count && process->mappings[last].start < end; last++) {
        struct mapping *old = &process->mappings[last];
        if (keep_removed)
            keep(processes, process, *old);
        if (old->start < start) {
            left = *old;
            left.end = start;
            files_hold(left.file);
        }
        if (old->end > end) {
            right = *old;
            right.start = end;
            right.offset += end - old->start;
            files_hold(right.file);
        }
        files_release(processes->files, old->file);
    }
    if (last > first)
        memmove(&process->mappings[first], &process->mappings[last],
                (process->count - last) * sizeof *process->mappings);
    process->count -= last - first;
    if (left.file)
        insert(process, left);
    if (right.file)
        insert(process, right);
    process->changes++;
}

void processes_map(struct processes *processes, pid_t pid, uint64_t start, uint64_t end,
                   uint64_t offset, const char *path, const struct symbols_identity *identity) {
    struct process *process = start < end ? find_or_make(processes, pid) : NULL;
    if (!process)
        return;
    /* The dynamic loader maps a library whole and then lays its segments over it: what a mapping
     * replaces was never there for long, and is not worth keeping. */
    remove_range(processes, process, start, end, false);
    struct file *file = files_get(processes->files, path, identity);
    if (file)
        insert(process,
               (struct mapping){.start = start, .end = end, .offset = offset, .file = file});
}

void processes_unmap(struct processes *processes, pid_t pid, uint64_t start, uint64_t end) {
    struct process *process = processes_find(processes, pid);
    if (process && start < end)
        remove_range(processes, process, start, end, processes->keep_unmapped);
}

void processes_fork(struct processes *processes, pid_t parent, pid_t child) {
    if (parent == child)
        return;
    processes_end(processes, child); /* the number may have been used before */
    struct process *from = processes_find(processes, parent);
    struct process *to = from ? find_or_make(processes, child) : NULL;
    if (!to)
        return;
    for (size_t i = 0; i < from->count; i++) {
        *vector_push(to->mappings, to->count) = from->mappings[i];
        files_hold(from->mappings[i].file);
    }
    for (size_t i = 0; i < from->unmapped_count; i++)
        keep(processes, to, from->unmapped[i]);
    for (size_t i = 0; i < from->generated_count; i++) {
        to->generated[to->generated_count++] = from->generated[i];
        generated_hold(from->generated[i]);
    }
    to->changes = from->changes;
}

struct mapping *process_mapping_below(struct process *process, uint64_t address) {
    size_t at = count_up_to(process, address);
    return at ? &process->mappings[at - 1] : NULL;
}

struct mapping *process_mapping(struct process *process, uint64_t address) {
    struct mapping *mapping = process_mapping_below(process, address);
    if (mapping && address < mapping->end)
        return mapping;
    for (size_t i = process->unmapped_count; i--;)
        if (address >= process->unmapped[i].start && address < process->unmapped[i].end)
            return &process->unmapped[i];
    return NULL;
}

void processes_generate(struct processes *processes, pid_t pid, struct generated *generated) {
    struct process *process = find_or_make(processes, pid);
    if (!process) {
        generated_release(generated);
        return;
    }
    if (process->generated_count == PROCESS_GENERATED_MAX)
        generated_release(process->generated[--process->generated_count]);
    memmove(&process->generated[1], &process->generated[0],
            process->generated_count * sizeof *process->generated);
    process->generated[0] = generated;
    process->generated_count++;
}

const struct generated_piece *process_generated(struct process *process, uint64_t address,
                                                uint64_t time) {
    const struct generated_piece *piece = NULL;
    for (size_t i = 0; !piece && i < process->generated_count; i++)
        piece = generated_find_at(process->generated[i], address, time);
    return piece;
}

/* ------------------------------------------------------------------ bias */

/* True if the mapping may be one of the segment's pages; then its bias. */
static bool fits(const struct mapping *mapping, const struct image_segment *segment,
                 uint64_t *bias) {
    uint64_t low = segment->offset & ~(uint64_t)(PAGE - 1);
    uint64_t high = (segment->offset + segment->file_size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    *bias = mapping->start - mapping->offset + segment->offset - segment->vaddr;
    return mapping->offset >= low && mapping->offset < high && *bias % PAGE == 0;
}

static unsigned score(const struct process *process, const struct mapping *mapping,
                      const struct image *image, uint64_t bias) {
    /* A fixed address that is kept is the better reason among equals. */
    unsigned result = image->fixed && bias == 0;
    for (size_t i = 0; i < process->count; i++) {
        const struct mapping *other = &process->mappings[i];
        if (other->file != mapping->file)
            continue;
        for (size_t j = 0; j < image->segment_count; j++) {
            uint64_t its;
            if (fits(other, &image->segments[j], &its) && its == bias) {
                result += 2;
                break;
            }
        }
    }
    return result;
}

bool process_bias(struct process *process, struct mapping *mapping, const struct image *image) {
    if (mapping->bias_valid == process->changes)
        return true;
    uint64_t candidates[MOST_CANDIDATES];
    bool holds_code[MOST_CANDIDATES];
    size_t count = 0;
    for (size_t i = 0; i < image->segment_count && count < MOST_CANDIDATES; i++) {
        uint64_t bias;
        if (!fits(mapping, &image->segments[i], &bias))
            continue;
        size_t known = 0;
        while (known < count && candidates[known] != bias)
            known++;
        candidates[known] = bias;
        holds_code[known] = image->segments[i].executable || (known < count && holds_code[known]);
        count += known == count;
    }
    if (!count)
        return false;
    mapping->bias = candidates[0];
    if (count > 1) {
        /* Segments may share a page of the file. Among equals it is the code that was mapped: many
         * a target tells of nothing else. */
        unsigned best = score(process, mapping, image, candidates[0]) * 2 + holds_code[0];
        for (size_t i = 1; i < count; i++) {
            unsigned its = score(process, mapping, image, candidates[i]) * 2 + holds_code[i];
            if (its > best) {
                best = its;
                mapping->bias = candidates[i];
            }
        }
    }
    mapping->bias_valid = process->changes;
    return true;
}

void processes_check(const struct processes *processes) {
    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct process *process = processes->buckets[i]; process;
             process = process->next) {
            assert((unsigned)process->pid % BUCKETS == i);
            for (size_t j = 0; j < process->count; j++) {
                const struct mapping *mapping = &process->mappings[j];
                assert(mapping->start < mapping->end && mapping->file->references);
                assert(!j || mapping[-1].end <= mapping->start);
            }
            for (size_t j = 0; j < process->generated_count; j++)
                generated_check(process->generated[j]);
        }
}
