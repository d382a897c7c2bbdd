/*
 * processes: which file is mapped where, in each target process.
 *
 * Invariant: the mappings of a process are sorted by start and do not overlap. Each holds a
 * reference to its file. Supervisor only; part of symbols.
 */
#ifndef QUERN_SYMBOLS_PROCESSES_H
#define QUERN_SYMBOLS_PROCESSES_H

#include "symbols/files.h"
#include "symbols/generated.h"

#define PROCESS_GENERATED_MAX 4

struct mapping {
    uint64_t start, end, offset;
    struct file *file;
    uint64_t bias;       /* address - bias is the address in the file's own terms */
    uint64_t bias_valid; /* value of process.changes for which bias was computed; 0: none */
};

struct process {
    struct process *next; /* in the same bucket */
    pid_t pid;
    struct mapping *mappings;
    size_t count;
    struct mapping *unmapped; /* kept on request, oldest first */
    size_t unmapped_count;
    uint64_t changes; /* number of changes of the mappings, from 1 */
    /* Code that no file contains: the process's own, then what it had when it was forked. */
    struct generated *generated[PROCESS_GENERATED_MAX];
    size_t generated_count;
};

struct processes;

struct processes *processes_new(struct files *files, bool keep_unmapped);
void processes_free(struct processes *processes);

/* NULL if it has no mappings. */
struct process *processes_find(struct processes *processes, pid_t pid);

void processes_map(struct processes *processes, pid_t pid, uint64_t start, uint64_t end,
                   uint64_t offset, const char *path, const struct symbols_identity *identity);
void processes_unmap(struct processes *processes, pid_t pid, uint64_t start, uint64_t end);
void processes_fork(struct processes *processes, pid_t parent, pid_t child);
void processes_end(struct processes *processes, pid_t pid);
/* Puts a set of pieces before those that the process has, and takes over the reference. */
void processes_generate(struct processes *processes, pid_t pid, struct generated *generated);
/* The latest piece of generated code at an address and a time; or NULL. */
const struct generated_piece *process_generated(struct process *process, uint64_t address,
                                                uint64_t time);

/* The mapping that contains address, among the live ones, then among those kept; or NULL. */
struct mapping *process_mapping(struct process *process, uint64_t address);
/* The last mapping that starts at or below address, live ones only; or NULL. */
struct mapping *process_mapping_below(struct process *process, uint64_t address);

/*
 * Computes the mapping's bias from the segments of its file. False if no segment fits. Some linkers
 * ignore page boundaries, so that one page of the file is mapped twice and its offset fits two
 * segments. The function then takes the bias that explains most of the process's mappings of this
 * file.
 */
bool process_bias(struct process *process, struct mapping *mapping, const struct image *image);

void processes_check(const struct processes *processes);

#endif
