#include "supervisor/processes.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

// A hostile target must not be able to fill the supervisor's memory.
#define MAPPINGS_MAX 100000

static struct process **table;
static size_t table_count;

struct process *processes_find(int pid) {
    for (size_t i = 0; i < table_count; i++)
        if (table[i]->pid == pid)
            return table[i];
    return NULL;
}

struct process *processes_add(int pid, bool *made) {
    struct process *process = processes_find(pid);
    *made = !process;
    if (process)
        return process;
    process = base_allocate(sizeof *process);
    process->pid = pid;
    process->pidfd = fd_move_high((int)syscall(SYS_pidfd_open, pid, 0));
    table = base_reallocate(table, (table_count + 1) * sizeof *table);
    table[table_count++] = process;
    return process;
}

void processes_remove(int pid) {
    for (size_t i = 0; i < table_count; i++) {
        if (table[i]->pid != pid)
            continue;
        process_forget_mappings(table[i]);
        if (table[i]->pidfd >= 0)
            close(table[i]->pidfd);
        free(table[i]);
        table[i] = table[--table_count];
        return;
    }
}

size_t processes_count(void) {
    return table_count;
}

struct process *processes_at(size_t index) {
    return table[index];
}

void process_forget_mappings(struct process *process) {
    for (size_t i = 0; i < process->mapping_count; i++)
        free(process->mappings[i].path);
    free(process->mappings);
    process->mappings = NULL;
    process->mapping_count = 0;
}

void process_inherit(struct process *child, const struct process *parent) {
    process_forget_mappings(child);
    child->mappings = base_allocate(parent->mapping_count * sizeof *child->mappings);
    child->mapping_count = parent->mapping_count;
    for (size_t i = 0; i < parent->mapping_count; i++) {
        child->mappings[i] = parent->mappings[i];
        child->mappings[i].path = base_copy(parent->mappings[i].path);
    }
}

static void insert_mapping(struct process *process, struct mapping mapping) {
    if (process->mapping_count >= MAPPINGS_MAX) {
        free(mapping.path);
        return;
    }
    process->mappings = base_reallocate(process->mappings,
                                        (process->mapping_count + 1) * sizeof *process->mappings);
    size_t place = process->mapping_count++;
    for (; place > 0 && process->mappings[place - 1].start > mapping.start; place--)
        process->mappings[place] = process->mappings[place - 1];
    process->mappings[place] = mapping;
}

void process_map(struct process *process, uint64_t start, uint64_t end, uint64_t offset,
                 unsigned prot, const char *path) {
    process_unmap(process, start, end);
    insert_mapping(process, (struct mapping){start, end, offset, prot, base_copy(path)});
}

void process_unmap(struct process *process, uint64_t start, uint64_t end) {
    for (size_t i = 0; i < process->mapping_count;) {
        struct mapping *old = &process->mappings[i];
        if (old->end <= start || old->start >= end) {
            i++;
        } else if (old->start < start && old->end > end) {
            struct mapping rest = {end, old->end, old->offset + (end - old->start), old->prot,
                                   base_copy(old->path)};
            old->end = start;
            insert_mapping(process, rest);
            return;
        } else if (old->start < start) {
            old->end = start;
            i++;
        } else if (old->end > end) {
            old->offset += end - old->start;
            old->start = end;
            i++;
        } else {
            free(old->path);
            memmove(old, old + 1, (--process->mapping_count - i) * sizeof *old);
        }
    }
}

void process_signal(const struct process *process, int signal) {
    if (process->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, process->pidfd, signal, NULL, 0);
    else
        kill(process->pid, signal);
}
