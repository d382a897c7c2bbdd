// Code of files that is mapped and unmapped: tells the supervisor, which names addresses, the
// unwinder, and the functions that the tool hooks (hooks/hooks.h).
//
// On the thread that has mapped it, from its system call or at start-up. It reads the file, so the
// target's limits are lifted meanwhile.
#ifndef QUERN_ENGINE_REPORT_MODULES_H
#define QUERN_ENGINE_REPORT_MODULES_H

#include <stdint.h>

// A file's code has been mapped.
void report_module(uint64_t start, uint64_t end, uint64_t offset, uint64_t prot, int fd);
void report_module_path(uint64_t start, uint64_t end, uint64_t offset, uint64_t prot,
                        const char *path);
void report_module_gone(uint64_t start, uint64_t end);
// File mappings inside the range have become executable.
void report_modules_in(uint64_t start, uint64_t end);

#endif
