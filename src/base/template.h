// File name templates of --log-file and every out-file option:
//   %p  the process      %n  a number counted within the process
//   %q{NAME}  the value of an environment variable      %%  a percent sign
// A name that begins with ~ is refused: the shell did not expand it, and a file of that name is
// never what was meant.
#ifndef QUERN_BASE_TEMPLATE_H
#define QUERN_BASE_TEMPLATE_H

#include <stdbool.h>

// The file name, to be freed; or NULL and in *error a reason, to be freed.
char *template_expand(const char *pattern, int pid, int number, char **error);
// Whether every process gets a name of its own.
bool template_has_pid(const char *pattern);

#endif
