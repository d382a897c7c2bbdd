// What start-up found out about the target process; constant afterwards but for brk.
#ifndef QUERN_ENGINE_PROCESS_H
#define QUERN_ENGINE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

extern struct process {
    char *program; // absolute path of the executable, for /proc/self/exe
    uint64_t brk_start, brk;
    uint64_t brk_limit;
    uint64_t stack_start, stack_end;
    uint64_t loader_start, loader_end; // the interpreter that the executable names
    int wire_fd, config_fd, ones_fd;   // ones_fd: memory/shadow_area.c; -1: none
    bool trace_syscalls;
    bool has_vsyscall;
    const char *print_blocks; // --debug-print-blocks
} process;

#endif
