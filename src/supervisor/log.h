// The log: every line a user sees passes here and gets its prefix (==PID==, --PID-- or **PID**,
// with --time-stamp the time since the start).
//
// Lines of processes whose log file has %p in its name go to a file of their own. A log that
// cannot be written (full disk, closed stderr, dead reader) costs one notice on stderr and is
// otherwise passed over: the run goes on and ends as it would have.
//
// The job owns the log of a run; tools find it in run->log. log_complain and log_connect work
// without one.
#ifndef QUERN_SUPERVISOR_LOG_H
#define QUERN_SUPERVISOR_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "supervisor/supervisor.h"

struct log;

enum log_mark { LOG_USER = '=', LOG_DEBUGGING = '-', LOG_PROGRAM = '*' };

// A log that has these settings. It can be asked, but not written, before log_open.
struct log *log_new(const struct log_settings *settings);
void log_free(struct log *log);
// Opens the log for the main process. False after a message on stderr.
bool log_open(struct log *log, int pid);
// Opens the file of a further process now, if it has one of its own.
void log_add_process(struct log *log, int pid);
// Closes the file of a process that has ended, if it had one of its own.
void log_drop_process(struct log *log, int pid);
// Closes everything. What was asked before can still be asked.
void log_close(struct log *log);
// Whether lines of this level are shown: 0 unless -q, 1 with -v, 2 with -v -v; -1 always.
bool log_shows(const struct log *log, int level);
// Whether the log goes to a file or socket rather than to a descriptor the user sees.
bool log_is_apart(const struct log *log);
// Whether it goes to a terminal. Scripts read other logs, which are therefore as Valgrind's are.
bool log_is_terminal(const struct log *log);
// Of the main process's log; -1: none.
int log_descriptor(const struct log *log);
// Prints text, each of its lines with the prefix. An empty text is an empty line.
void log_print(struct log *log, int pid, enum log_mark mark, const char *text);
void log_format(struct log *log, int pid, enum log_mark mark, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
// Lines of the process go there instead, until a call with NULL.
void log_divert(struct log *log, int pid, struct text *to);
// Prints text as it is, without a prefix.
void log_raw(struct log *log, int pid, const char *text);
// Prints the prefix and the text, and stays in the line.
void log_prompt(struct log *log, int pid, const char *text);
// Since log_open.
uint64_t log_milliseconds(const struct log *log);
// Connects to ADDRESS[:PORT] (numeric, as in Valgrind). -1 when that fails.
int log_connect(const char *place);
// One line on stderr without prefix: `quern: ...`. For failures outside the log.
void log_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same of a profile that cannot be written, which fails the run.
void log_cannot_write(struct log *log, const char *path, const char *reason);
// Whether a profile could not be written.
bool log_has_failed(const struct log *log);

#endif
