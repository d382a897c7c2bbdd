// The other side of a process that answers gdb (engine/debug/debug.h): finding it, connecting,
// giving it commands. For `quern vgdb` and `quern ctl`.
//
// The connection goes to the control socket of the run (base/control.h). The supervisor passes
// bytes on to the process.
#ifndef QUERN_CLI_DEBUG_CLIENT_H
#define QUERN_CLI_DEBUG_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

struct debug_process {
    int pid;
    int run; // the first process of its run, which names the control socket
    char *prefix, *command;
};

struct debug_processes {
    struct debug_process *at;
    size_t count;
};

// All processes of all runs of this user.
struct debug_processes debug_list(void);
void debug_list_free(struct debug_processes *);

// A connection to the process of a run: a descriptor, or -1 after a message on stderr.
int debug_connect(int run, int pid);
// Gives a command; what it answers goes to stdout. False after a message on stderr.
bool debug_command(int connection, const char *command);
// Lets the process go on, and closes the connection.
void debug_disconnect(int connection);

// What gdb is reached by.
struct debug_ends {
    int in, out;
};
enum debug_relay_end { DEBUG_GDB_GONE, DEBUG_PROCESS_GONE, DEBUG_FAILED };
// Passes bytes on between gdb and the process until one of them is gone.
enum debug_relay_end debug_relay(const struct debug_ends *gdb, int connection);

// One packet as an answer to one: the payload, which is good until the next call; NULL: the
// connection has ended.
const char *debug_ask(int connection, const char *packet);

#endif
