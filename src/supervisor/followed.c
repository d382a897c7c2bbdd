#include "supervisor/followed.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/vector.h"

struct followed *followed_find(const struct followed_table *table, int pid) {
    for (size_t i = 0; i < table->count; i++)
        if (table->items[i]->pid == pid)
            return table->items[i];
    return NULL;
}

struct followed *followed_add(struct followed_table *table, int pid, bool *made) {
    struct followed *process = followed_find(table, pid);
    *made = !process;
    if (process)
        return process;
    process = base_allocate(sizeof *process);
    process->pid = pid;
    process->pidfd = fd_move_high((int)syscall(SYS_pidfd_open, pid, 0));
    *vector_push(table->items, table->count) = process;
    return process;
}

static void free_words(struct followed *process) {
    for (size_t i = 0; process->words && process->words[i]; i++)
        free(process->words[i]);
    free(process->words);
    process->words = NULL;
}

void followed_set_words(struct followed *process, const char *const *words, size_t count) {
    free_words(process);
    process->words = base_allocate((count + 1) * sizeof *process->words);
    for (size_t i = 0; i < count; i++)
        process->words[i] = base_copy(words[i]);
}

static void free_process(struct followed *process) {
    if (process->pidfd >= 0)
        close(process->pidfd);
    free(process->away);
    free(process->command);
    free_words(process);
    free(process);
}

void followed_remove(struct followed_table *table, int pid) {
    for (size_t i = 0; i < table->count; i++) {
        if (table->items[i]->pid != pid)
            continue;
        free_process(table->items[i]);
        table->items[i] = table->items[--table->count];
        break;
    }
    if (!table->count) {
        free(table->items);
        table->items = NULL;
    }
}

void followed_signal(const struct followed *process, int signal) {
    if (process->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, process->pidfd, signal, NULL, 0);
    else
        kill(process->pid, signal);
}
