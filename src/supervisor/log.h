// The log: every line a user sees passes here and gets its prefix (==PID==, --PID-- or **PID**,
// with --time-stamp the time since the start).
//
// Lines of processes whose log file has %p in its name go to a file of their own. A log that
// cannot be written (full disk, closed stderr, dead reader) costs one notice on stderr and is
// otherwise passed over: the run goes on and ends as it would have.
#ifndef QUERN_SUPERVISOR_LOG_H
#define QUERN_SUPERVISOR_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "supervisor/supervisor.h"

enum log_mark { LOG_USER = '=', LOG_DEBUGGING = '-', LOG_PROGRAM = '*' };

// Opens the log for the main process. False after a message on stderr.
bool log_open(const struct log_settings *settings, int pid);
// Opens the file of a further process now, if it has one of its own.
void log_add_process(int pid);
// Closes the file of a process that has ended, if it had one of its own.
void log_drop_process(int pid);
// Closes everything.
void log_close(void);
// Whether lines of this level are shown: 0 unless -q, 1 with -v, 2 with -v -v; -1 always.
bool log_shows(int level);
// Whether the log goes to a file or socket rather than to a descriptor the user sees.
bool log_is_apart(void);
// Whether it goes to a terminal. Scripts read other logs, which are therefore as Valgrind's are.
bool log_is_terminal(void);
// Prints text, each of its lines with the prefix. An empty text is an empty line.
void log_print(int pid, enum log_mark mark, const char *text);
void log_format(int pid, enum log_mark mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Prints text as it is, without a prefix.
void log_raw(int pid, const char *text);
// Prints the prefix and the text, and stays in the line.
void log_prompt(int pid, const char *text);
// Since log_open.
uint64_t log_milliseconds(void);
// Connects to ADDRESS[:PORT] (numeric, as in Valgrind). -1 when that fails.
int log_connect(const char *place);
// One line on stderr without prefix: `quern: ...`. For failures outside the log.
void log_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same of a profile that cannot be written, which fails the run.
void log_cannot_write(const char *path, const char *reason);
bool log_has_failed(void);

#endif
