// What system calls do to target memory. Before a call, memcheck checks what the kernel will read;
// after it, memcheck marks what the kernel has written. Called from the tool's hooks of the same
// names, on the thread that makes the call.
#ifndef QUERN_MEMCHECK_SYSCALLS_H
#define QUERN_MEMCHECK_SYSCALLS_H

#include <stdint.h>

// Hooks of the engine.
void memcheck_before_system_call(long number, const uint64_t arguments[6]);
void memcheck_after_system_call(long number, const uint64_t arguments[6], long result);

#endif
