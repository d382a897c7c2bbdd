// The recorded processes of a run and what is made of them: for each, a source (supervisor/source.h)
// whose events go to the tool's sinks, and a report when it ends.
#ifndef QUERN_SUPERVISOR_HEAP_H
#define QUERN_SUPERVISOR_HEAP_H

#include <stdint.h>

#include "base/text.h"
#include "supervisor/supervisor.h"

// Once, before the main process runs. Does nothing for tools that translate.
void heap_prepare(const struct supervisor_request *request, struct symbols *symbols, int main_pid);
// A process has handed its area over.
void heap_attach(int pid, int fd, uint64_t size);
// Part of a file is mapped in a process.
void heap_map(int pid, uint64_t start, uint64_t end, uint64_t offset, const char *path);
// Takes what has been recorded.
void heap_drain(void);
// Nanoseconds until heap_drain is due; -1: never.
int64_t heap_timeout(void);
// The process has ended or runs another program now: takes the rest and reports. Its mappings must
// still be known to the symbols.
void heap_finish(int pid);
// Nobody is left who could say more: finishes all.
void heap_finish_all(void);
// The main process has ended: says so if it was never recorded.
void heap_finish_main(void);

// The process is about to end and waits: it is searched for leaks, if that is wanted.
void heap_ending(int pid);
// The main process is about to be stopped by a signal.
void heap_stopping(void);
// What somebody asks for by quern ctl. False: it is nothing that heap tools do; else the answer.
bool heap_wish(const char *wish, struct text *answer);

// Whether losses that count as errors were found when a process ended.
bool heap_leaks_failed(void);

#endif
