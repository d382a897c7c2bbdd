// Which processes have a TCP or UDP port of this machine, and what they are called.
//
// From /proc: processes whose descriptors may not be read are not found. Supervisor only.
#ifndef QUERN_SUPERVISOR_LISTENER_H
#define QUERN_SUPERVISOR_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

enum listener_kind { LISTENER_TCP, LISTENER_UDP };

// Whether somebody accepts connections on the loopback interface, or has bound the UDP port.
bool listener_is_used(enum listener_kind kind, int port);
// Their pids, at most `most` of them; how many there are in `pids`.
size_t listener_processes(enum listener_kind kind, int port, int *pids, size_t most);
// What such a process does: "accepts connections".
const char *listener_verb(enum listener_kind kind);
// Whether the process is `ancestor` or descends from it.
bool listener_descends(int pid, int ancestor);
// Appends "process 12 (name)".
void listener_name(struct text *, int pid);

#endif
