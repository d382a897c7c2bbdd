// Code, and pointers to functions, as they are in the files of a target: what instructions say of
// the calls on a stack. Files are opened when they are first asked for, some at a time, and read
// with pread, so that one that is cut short meanwhile gives nothing. Supervisor only.
#ifndef QUERN_SUPERVISOR_FLAME_CODE_H
#define QUERN_SUPERVISOR_FLAME_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flame_code;

struct flame_code *flame_code_open(void);
// Copies bytes from a place in a file; false: not all are there.
bool flame_code_read(struct flame_code *code, const char *path, uint64_t offset, uint8_t *bytes,
                     size_t size);
// The function that a pointer in a file's data will lead to once it is loaded, if it is one of the
// same file. `distance` is that of the pointer from the code at `offset`, as it lies in memory; it
// becomes that of the function. False: there is no such pointer.
bool flame_code_pointer(struct flame_code *code, const char *path, uint64_t offset,
                        int64_t *distance);
void flame_code_close(struct flame_code *code);

#endif
