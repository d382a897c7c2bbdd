// The files that a process has mapped: opening them where the process sees them, and what they
// define. The process may live in another mount namespace (a container), so that its paths mean
// something only below /proc/PID/root.
//
// Files are not trusted. Supervisor context.
#ifndef QUERN_ATTACH_OBJECTS_H
#define QUERN_ATTACH_OBJECTS_H

#include <stdbool.h>

#include "base/maps.h"

// A path of the process as a path of ours: the same, or below /proc/PID/root. To be freed.
char *object_path(int pid, const char *path);
// Opens the file behind a mapping. -1: it cannot be opened.
int object_open(int pid, const struct maps_mapping *mapping);
// Whether its dynamic symbols define a function of this name.
bool object_defines(int fd, const char *name);
// The same, with the function's address in the file; NULL: not asked for.
bool object_function(int fd, const char *name, uint64_t *address);
// The part of a path behind its last slash.
const char *object_name(const char *path);

#endif
