// Programs that the main process has run and Quern has not followed: a script or shim (npx, cargo
// run, pyenv) leaves the work to them, and a report about itself is hardly what the user wants.
//
// The kernel knows until the process is reaped. Supervisor context.
#ifndef QUERN_SUPERVISOR_UNFOLLOWED_H
#define QUERN_SUPERVISOR_UNFOLLOWED_H

#include <stdbool.h>
#include <sys/types.h>

struct unfollowed {
    char name[16];      // of the program that the process was in the end; "": not known
    double own, others; // seconds of CPU time: of the process, of the children it waited for
};

// Reads what is known of a process that has ended and is not reaped yet.
void unfollowed_read(pid_t pid, struct unfollowed *);
// Whether others have done the work.
bool unfollowed_had_the_work(const struct unfollowed *);

#endif
