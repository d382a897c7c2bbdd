// Invalid accesses that are not findings: probes of the stack (probe.h), and what the user or the
// target asks for by --ignore-ranges, --ignore-range-below-sp, --workaround-gcc296-bugs, and
// requests (requests.h).
#ifndef QUERN_MEMCHECK_IGNORED_H
#define QUERN_MEMCHECK_IGNORED_H

#include <stdbool.h>
#include <stdint.h>

void ignored_start(void); // reads options
bool ignored_access(uint64_t address);

#endif
