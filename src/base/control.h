// Wishes of the user while the target runs: quern ctl PID dump.
//
// The supervisor listens on a socket named by the main process's pid, in a folder that belongs to
// the user alone. One connection is one wish: a line of words, and a line in answer that begins
// with "ok" or says what is wrong. Any tool may serve wishes; the supervisor's loop decides which.
// Supervisor and command line only.
#ifndef QUERN_BASE_CONTROL_H
#define QUERN_BASE_CONTROL_H

#include <stddef.h>

enum { CONTROL_MOST = 256 }; // bytes of a wish

// An answer: the wish is a command for the process, to be given by gdb's remote protocol.
#define CONTROL_GIVE_COMMAND "command"

// Starts listening: a descriptor, or -1. Without it the run goes on.
int control_open(int pid);
// The next wish, NUL-terminated: the descriptor to answer on, or -1.
int control_next(int listening, char wish[CONTROL_MOST]);
// Answers, and ends the connection.
void control_answer(int fd, const char *text);
void control_close(int listening, int pid);
// The other side: sends a wish and waits for the answer. 0, or an errno.
int control_ask(int pid, const char *wish, char *answer, size_t room);

// The same, but the connection stays open if the answer is a line "ok": its descriptor, or -1 and
// the answer, or a text of the failure.
int control_connect(int pid, const char *wish, char *answer, size_t room);
// Calls fn(pid, context) for each process that somebody listens for, as far as names of sockets
// tell.
void control_each(void (*fn)(int pid, void *context), void *context);

#endif
