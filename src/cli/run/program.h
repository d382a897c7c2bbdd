// Finding the program to run, and saying clearly why one cannot be run.
//
// All of this happens before anything is launched, so that a mistake in the command line is
// reported by quern itself, with a shell's exit statuses.
#ifndef QUERN_CLI_PROGRAM_H
#define QUERN_CLI_PROGRAM_H

#include <stdbool.h>

#define STATUS_NOT_RUNNABLE 126
#define STATUS_NOT_FOUND    127

// Resolves `name` as execvp would and checks the file. The path, to be freed; or NULL with *status
// set to 126 or 127 and *reason to a message, to be freed.
char *program_find(const char *name, int *status, char **reason);

// Whether the file is a text without a #! line, which execvp has a shell run.
bool program_is_shell_text(const char *path);

// Whether the program, or what interprets it, has no loader: nothing can be preloaded into it.
bool program_is_static(const char *path);

#endif
