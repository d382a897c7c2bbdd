#include "supervisor/followed.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

static struct followed **table;
static size_t table_count;

struct followed *followed_find(int pid) {
    for (size_t i = 0; i < table_count; i++)
        if (table[i]->pid == pid)
            return table[i];
    return NULL;
}

struct followed *followed_add(int pid, bool *made) {
    struct followed *process = followed_find(pid);
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

void followed_remove(int pid) {
    for (size_t i = 0; i < table_count; i++) {
        if (table[i]->pid != pid)
            continue;
        if (table[i]->pidfd >= 0)
            close(table[i]->pidfd);
        free(table[i]->command);
        free_words(table[i]);
        free(table[i]);
        table[i] = table[--table_count];
        if (!table_count) {
            free(table);
            table = NULL;
        }
        return;
    }
}

size_t followed_count(void) {
    return table_count;
}

struct followed *followed_at(size_t index) {
    return table[index];
}

void followed_signal(const struct followed *process, int signal) {
    if (process->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, process->pidfd, signal, NULL, 0);
    else
        kill(process->pid, signal);
}
