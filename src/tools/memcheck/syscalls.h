// What system calls do to target memory: checked before, marked after.
#ifndef QUERN_MEMCHECK_SYSCALLS_H
#define QUERN_MEMCHECK_SYSCALLS_H

#include <stdint.h>

void syscalls_before(long number, const uint64_t arguments[6]);
void syscalls_after(long number, const uint64_t arguments[6], long result);

#endif
