// The target's file descriptors: who opened and closed them (--track-fds), and which numbers new
// ones get (--modify-fds).
//
// Words
//   known       a descriptor that was open when the process began, or that a call has opened since
//   fault       a descriptor that is used or closed while it is not open, or left open at the end
//
// A descriptor that the kernel refuses (EBADF) is judged by what is known of it, so that the
// reports follow what really happened. The child of a vfork has descriptors of its own and its
// parent's memory: it is not followed.
#ifndef QUERN_ENGINE_REPORT_TRACK_DESCRIPTORS_H
#define QUERN_ENGINE_REPORT_TRACK_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>

// Reads the options, and what is open. Whether all system calls must be seen.
bool track_descriptors_start(void);
// After each call; *result may be replaced. Before a close, what is known of it is kept.
void track_descriptors_before(long number, const uint64_t arguments[6]);
void track_descriptors_after(long number, const uint64_t arguments[6], long *result);
// Reports what is left open. Once, at the end of the process.
void track_descriptors_end(void);
// Whether there was a fault that no tool has taken: what --error-exitcode is about.
bool track_descriptors_failed(void);

#endif
