// What start-up found out about the target process.
//
// Set before the first target instruction and constant afterwards, with these exceptions: brk and
// stack_start (under the space lock), descriptors, which move when the target wants their numbers,
// and has_userfaultfd.
#ifndef QUERN_ENGINE_PROCESS_H
#define QUERN_ENGINE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

extern struct process {
    char *program;       // absolute path of the executable, for /proc/self/exe
    uint64_t dev, inode; // of that file
    uint64_t brk_start, brk;
    uint64_t brk_limit;
    uint64_t stack_start, stack_end;
    uint64_t loader_start, loader_end; // the interpreter that the executable names
    uint64_t auxv, auxv_size;          // the auxiliary vector on the initial stack
    int wire_fd, config_fd, shadow_fd; // shadow_fd: memory/shadow_area.c; -1: none
    int debug_fd;                      // to gdb (debug/channel.h); -1: none
    bool trace_syscalls;
    bool has_vsyscall;
    bool has_userfaultfd;     // has made one, so that an instruction may wait for a page
    const char *print_blocks; // --debug-print-blocks
} process;

// Whether a descriptor is the engine's own.
static inline bool process_owns_descriptor(int fd) {
    return fd >= 0 && (fd == process.wire_fd || fd == process.config_fd ||
                       fd == process.shadow_fd || fd == process.debug_fd);
}

#endif
