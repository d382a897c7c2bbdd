// The end of the process: what is done and reported before it.
//
// On the thread that ends the process, between two instructions. The tool writes its last report
// here, and the process waits until the supervisor has shown it. A child that shares its parent's
// memory (vfork) reports its end only; the results stay with the parent.
#ifndef QUERN_ENGINE_REPORT_ENDING_H
#define QUERN_ENGINE_REPORT_ENDING_H

#include <signal.h>

// Tells the supervisor that a signal ends the process, and where.
void ending_by_signal(int number, const siginfo_t *);
// Does and reports what comes before an end by exit. Returns the status to end with.
int ending_by_exit(int status);

#endif
