// --tool=flame: samples of a natively running target, made into a flame graph.
//
// Words: an *image* is a program in a process, from its exec to the next or to the process's end;
// it is followed or not. Stacks are kept as addresses and are given names at the end, when naming
// cannot delay the reading of samples, or before when they have grown too many.
//
// Memory is bounded: STACKS_BYTES of stacks, NODES_MAX of the tree, and what symbols need.
#ifndef QUERN_SUPERVISOR_FLAME_H
#define QUERN_SUPERVISOR_FLAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"
#include "supervisor/supervisor.h"

// Before the main process is forked: chooses how to sample. False after a message.
bool flame_choose(const struct supervisor_request *request);
// In the forked child, just before it executes the program.
void flame_enter(void);
// Before the main process execs. False after a message. Does nothing for other tools.
bool flame_open(const struct supervisor_request *request, pid_t main_pid);
// Takes what has been sampled.
void flame_drain(void);
// Answers `quern ctl`. False: it is none of flame's.
bool flame_wish(const char *wish, struct text *answer);
// Nanoseconds until flame_drain is due; -1: never.
int64_t flame_timeout(void);
// The main process has ended: takes the rest, writes the files and reports.
void flame_finish(void);

#endif
