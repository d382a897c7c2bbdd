// The processes that run translated, as far as the supervisor knows them.
//
// A process enters the table with its first message (or as the main process) and leaves it when
// its pidfd says that it has ended. Pids are those of the supervisor's pid namespace. The job owns
// the table; tools read it as run->processes.
#ifndef QUERN_SUPERVISOR_FOLLOWED_H
#define QUERN_SUPERVISOR_FOLLOWED_H

#include <stdbool.h>
#include <stddef.h>

struct followed {
    int pid;
    int pidfd;        // -1 when the kernel gave none
    bool muted;       // --child-silent-after-fork, until the next exec
    bool fatal_shown; // its fatal signal has been reported
    char *away; // the program that it execs, which is not followed; any later message revokes it
    int away_reason; // enum wire_away
    bool ending;     // its tool has the last word
    // The name that the kernel had of the main process when it has ended by exit; "": not known.
    char ended_as[16];
    bool greeted;    // a banner has been printed for it
    bool execs;      // it has said that it is about to; revoked by the next hello
    char *command;   // what it runs, where that is not the main process's first program
    char **words;    // the same in words, NULL at the end; NULL: not known
    void *own;       // what the tool keeps of it; made and freed by the tool alone
};

// In no order: an entry that leaves makes room for the last one.
struct followed_table {
    struct followed **items;
    size_t count;
};

// The entry of a process, NULL when unknown.
struct followed *followed_find(const struct followed_table *table, int pid);
// The entry, made if necessary; *made says which. `pidfd` is opened but not watched.
struct followed *followed_add(struct followed_table *table, int pid, bool *made);
void followed_remove(struct followed_table *table, int pid);
// Copies the words of its command.
void followed_set_words(struct followed *process, const char *const *words, size_t count);

// Sends a signal without the risk of hitting a later process of the same number.
void followed_signal(const struct followed *process, int signal);

#endif
