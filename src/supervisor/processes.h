// The processes that run translated, as far as the supervisor knows them.
//
// A process enters the table with its first message (or as the main process) and leaves it when
// its pidfd says that it has ended, or when it execs a program that is not followed. Pids are those
// of the supervisor's pid namespace.
#ifndef QUERN_SUPERVISOR_PROCESSES_H
#define QUERN_SUPERVISOR_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A mapped piece of a file.
struct mapping {
    uint64_t start;
    uint64_t end;
    uint64_t offset;
    unsigned prot;
    char *path;
};

struct process {
    int pid;
    int pidfd;        // -1 when the kernel gave none
    bool muted;       // --child-silent-after-fork, until the next exec
    bool fatal_shown; // its fatal signal has been reported
    bool away;    // said that it execs a program that is not followed; any later message revokes it
    bool greeted; // a banner has been printed for it
    // Mappings sorted by start, none overlapping.
    struct mapping *mappings;
    size_t mapping_count;
};

// The entry of a process, NULL when unknown.
struct process *processes_find(int pid);
// The entry, made if necessary; *made says which. `pidfd` is opened but not watched.
struct process *processes_add(int pid, bool *made);
void processes_remove(int pid);
size_t processes_count(void);
struct process *processes_at(size_t index);

// A forked child starts with its parent's mappings.
void process_inherit(struct process *child, const struct process *parent);
void process_forget_mappings(struct process *process);
void process_map(struct process *process, uint64_t start, uint64_t end, uint64_t offset,
                 unsigned prot, const char *path);
void process_unmap(struct process *process, uint64_t start, uint64_t end);
// Sends a signal without the risk of hitting a later process of the same number.
void process_signal(const struct process *process, int signal);

#endif
