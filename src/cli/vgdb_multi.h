// vgdb --multi: gdb's extended remote protocol. gdb asks to run a program, again and again if it
// likes; each is started under Quern, waits for gdb at its start, and talks to gdb until it ends.
#ifndef QUERN_CLI_VGDB_MULTI_H
#define QUERN_CLI_VGDB_MULTI_H

#include "cli/arguments.h"
#include "cli/debug_client.h"

// Until gdb is gone; the exit status.
int vgdb_multi(const struct arguments *arguments, const struct debug_ends *gdb);

#endif
