// What the supervisor itself says in the log: the banner, fatal signals, the end.
// The layout is Valgrind's, so that what reads its logs goes on working; the wording is ours.
#ifndef QUERN_SUPERVISOR_PRESENT_H
#define QUERN_SUPERVISOR_PRESENT_H

#include "base/text.h"
#include "supervisor/supervisor.h"
#include "wire/wire.h"

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
// What the program asked to print.
void present_print(struct tool_run *run, int pid, const struct wire_print *print);
// Where the profile is, for people: on a terminal, and after a server scenario.
void present_file(const struct supervisor_request *request, int pid, const char *path);
// The main process ended by a signal that it could not announce.
void present_killed(int pid, int signal);

#endif
