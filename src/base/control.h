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

// Starts listening: a descriptor, or -1. Without it the run goes on.
int control_open(int pid);
// The next wish, NUL-terminated: the descriptor to answer on, or -1.
int control_next(int listening, char wish[CONTROL_MOST]);
// Answers, and ends the connection.
void control_answer(int fd, const char *text);
void control_close(int listening, int pid);
// The other side: sends a wish and waits for the answer. 0, or an errno.
int control_ask(int pid, const char *wish, char *answer, size_t room);

#endif
