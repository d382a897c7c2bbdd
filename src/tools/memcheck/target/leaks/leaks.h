// The leak search: finds the blocks of the heap that nothing points to, and sends them to the
// supervisor as losses (wire/findings.h).
//
// Words: profile/findings/leaks.h has the kinds of losses, search.h the words of the search itself.
// `mode` is how much is reported, `delta` which losses are, compared with the search before.
//
// A search stops all other threads of the target, and runs on the thread that calls leaks_check or
// leaks_check_at_end: in a client request, or when the process ends. The functions for a fork are
// called from the tool's hooks of the same names.
#ifndef QUERN_MEMCHECK_LEAKS_H
#define QUERN_MEMCHECK_LEAKS_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/findings/leaks.h"

enum leak_mode { LEAKS_SUMMARY, LEAKS_FULL };
enum leak_delta { LEAKS_ALL, LEAKS_INCREASED, LEAKS_CHANGED, LEAKS_NEW };

void leaks_start(void);                                        // reads options
void leaks_change_option(const char *name, const char *value); // while the program runs
void leaks_forking(void);                                      // before a fork
void leaks_fork_made(void);                                    // in the parent, also when it failed
void leaks_forked(void);                                       // in the child
void leaks_check_at_end(void);                                 // what --leak-check asks for

// A search that the target asks for, or a user.
struct leak_command {
    enum leak_mode mode;
    enum leak_delta delta;
    unsigned kinds;  // to show: a set of 1 << enum leak_kind; 0: as options say
    uint64_t limit;  // at most this many losses are shown, the largest; 0: all
    int heuristics;  // likewise a set; -1: as options say
    bool by_command; // hints name arguments of the command, not options
};
void leaks_check(const struct leak_command *);

struct leak_totals {
    uint64_t bytes[LEAK_KINDS + 1], blocks[LEAK_KINDS + 1]; // the last is for suppressed ones
};
struct leak_totals leaks_last(void); // VALGRIND_COUNT_LEAKS

#endif
