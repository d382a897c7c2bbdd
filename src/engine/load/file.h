// A module's file, mapped to be read: which address its own numbering gives to a place in it.
#ifndef QUERN_ENGINE_LOAD_FILE_H
#define QUERN_ENGINE_LOAD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_view {
    const uint8_t *bytes;
    size_t size;
};

// Maps the file; false if that is impossible. file_close undoes it.
bool file_open(struct file_view *, const char *path);
void file_close(struct file_view *);

// [offset, offset + size) of the file, or NULL if it is not all there.
const void *file_part(const struct file_view *, uint64_t offset, uint64_t size);

// The link-time address of the executable segment's page at this file offset. False: the file is no
// 64-bit ELF file, or no executable segment has that page.
bool file_code_address(const struct file_view *, uint64_t offset, uint64_t *address);

#endif
