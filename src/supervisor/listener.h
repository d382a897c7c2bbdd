// Which processes listen on a TCP port of this machine, and what they are called.
//
// From /proc: processes whose descriptors may not be read are not found. Supervisor only.
#ifndef QUERN_SUPERVISOR_LISTENER_H
#define QUERN_SUPERVISOR_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

// Whether somebody accepts connections on the loopback interface.
bool listener_accepts(int port);
// Their pids, at most `most` of them; how many there are in `pids`.
size_t listener_processes(int port, int *pids, size_t most);
// Whether the process is `ancestor` or descends from it.
bool listener_descends(int pid, int ancestor);
// Appends "process 12 (name)".
void listener_name(struct text *, int pid);

#endif
