// What system calls do to target memory: memcheck checks it before and marks it after.
#ifndef QUERN_MEMCHECK_SYSCALLS_H
#define QUERN_MEMCHECK_SYSCALLS_H

#include <stdint.h>

// Hooks of the engine.
void memcheck_before_system_call(long number, const uint64_t arguments[6]);
void memcheck_after_system_call(long number, const uint64_t arguments[6], long result);

#endif
