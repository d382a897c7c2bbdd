// --progress-interval: a line every few seconds that says how long the main process has run. The
// supervisor's loop (collect.c) asks for the timeout and calls the step.
#ifndef QUERN_SUPERVISOR_HEARTBEAT_H
#define QUERN_SUPERVISOR_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

struct log;

struct heartbeat {
    int64_t interval_ms; // 0: not wanted
    int64_t start_ms, next_ms;
};

void heartbeat_start(struct heartbeat *, long seconds);
// Milliseconds until the next line is due, -1: never.
int heartbeat_timeout(const struct heartbeat *);
// Prints the line if it is due.
void heartbeat_step(struct heartbeat *, struct log *, int pid);

#endif
