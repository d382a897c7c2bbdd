// The socket between the process and gdb, and packets over it.
//
// A process has one at a time, from channel_open to channel_close. The server (debug.h) calls these
// functions at a stop. A thread that is asked to stop looks first whether gdb has sent something.
#ifndef QUERN_ENGINE_DEBUG_CHANNEL_H
#define QUERN_ENGINE_DEBUG_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>

// Makes the socket and gives its other end to the supervisor. `waits`: without having been asked.
bool channel_open(bool waits);
void channel_close(void);
// Whether something has arrived, be it the end.
bool channel_has_input(void);

enum { CHANNEL_CLOSED = -1, CHANNEL_INTERRUPT = -2, CHANNEL_SIGNALLED = -3 };
// The next packet's size, or one of the above. The packet is terminated and stays until the next.
// CHANNEL_SIGNALLED: nothing has come from gdb yet, but a signal for the target has.
long channel_receive(const char **packet);
void channel_send(const char *payload, size_t size);
void channel_reply(const char *text);
void channel_stop_acknowledging(void);

#endif
