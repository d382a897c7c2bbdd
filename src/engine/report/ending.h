// The end of the process: what is done and reported before it.
#ifndef QUERN_ENGINE_REPORT_ENDING_H
#define QUERN_ENGINE_REPORT_ENDING_H

#include <signal.h>

// Tells the supervisor that a signal ends the process, and where.
void ending_by_signal(int number, const siginfo_t *);
// Does and reports what comes before an end by exit. Returns the status to end with.
int ending_by_exit(int status);

#endif
