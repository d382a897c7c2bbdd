// File descriptors. Those of the supervisor are kept out of the low numbers, so that the target
// finds the numbers free that it would find free natively (also when 0, 1 or 2 are closed).
// Nothing here allocates or prints: callable from inside the target, too.
#ifndef QUERN_BASE_FD_H
#define QUERN_BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// Moves a descriptor to a high number, close-on-exec set; closes the old one. Passes -1 through.
int fd_move_high(int fd);
// Writes everything. Waits where the descriptor is non-blocking. 0, or the error number.
int fd_write_all(int fd, const char *bytes, size_t size);
// Gives a memory file its size, whatever the size of files is limited to (ulimit -f), as far as
// that may be lifted. False: errno says why; no signal is sent. For targets and the supervisor.
bool fd_set_size(int fd, off_t size);

#endif
