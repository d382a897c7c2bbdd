// What the supervisor itself says in the log: the banner, fatal signals, the end.
// The layout is Valgrind's, so that what reads its logs goes on working; the wording is ours.
#ifndef QUERN_SUPERVISOR_PRESENT_H
#define QUERN_SUPERVISOR_PRESENT_H

#include "base/text.h"
#include "supervisor/supervisor.h"
#include "wire/finding.h"
#include "wire/wire.h"

struct log;
struct tool_run;

// Adds the command as logs and output files show it. `words` ends with NULL.
void present_command(struct text *line, const char *const *words);
// The four lines of the banner.
void present_preamble(const struct supervisor_request *request, struct text lines[4],
                      const char *const *words, size_t count);
// The banner of a process. `words` are the command's `count` words.
void present_banner(const struct supervisor_request *request, int pid, int parent,
                    const char *const *words, size_t count);
void present_remarks(const struct supervisor_request *request, int pid);
void present_fatal_signal(struct tool_run *run, int pid, const struct wire_fatal_signal *fatal);
// A finding of the engine's own, under a tool that takes none.
void present_finding(struct tool_run *run, int pid, const struct wire_finding *finding);
// What the program asked to print.
void present_print(struct tool_run *run, int pid, const struct wire_print *print);
// The symbols of the run, which say in the log of the main process what servers do.
struct symbols *present_symbols(const struct supervisor_request *request);
// Where the profile is, for people: on a terminal, and after a server scenario.
void present_file(const struct supervisor_request *request, int pid, const char *path);
// The main process ended by a signal that it could not announce.
void present_killed(struct log *log, int pid, int signal);
// The main process has left the work to other programs, unless they were followed.
void present_unfollowed(const struct supervisor_request *, int pid);
// The main process has become a program that was not followed; reason: enum wire_away.
void present_away(struct log *log, int pid, const char *path, int reason);

#endif
