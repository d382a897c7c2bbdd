// The headers of an ELF file that is read with pread: for a few bytes of a file, or for one that
// may become shorter meanwhile, which would raise SIGBUS in a mapping. base/elf_view.h is for whole
// files in memory.
//
// Nothing here trusts the file. Supervisor's side: the engine's loader reads headers itself,
// because it says what exactly is wrong with them (engine/load/module.c).
#ifndef QUERN_BASE_ELF_FILE_H
#define QUERN_BASE_ELF_FILE_H

#include <unistd.h>

#include "base/elf_view.h"

enum { ELF_FILE_SEGMENTS = 128 }; // more than any linker makes

// Exactly `size` bytes from this offset on. False: they are not all there.
static inline bool elf_file_read(int fd, uint64_t offset, void *to, size_t size) {
    return fd >= 0 && offset <= INT64_MAX && pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

// The program headers that the header names: how many; 0: they cannot be read, or there are too
// many.
static inline size_t elf_file_segments(int fd, const Elf64_Ehdr *header,
                                       Elf64_Phdr segments[ELF_FILE_SEGMENTS]) {
    size_t count = header->e_phnum;
    bool is_fine = header->e_phentsize == sizeof *segments && count <= ELF_FILE_SEGMENTS &&
                   elf_file_read(fd, header->e_phoff, segments, count * sizeof *segments);
    return is_fine ? count : 0;
}

// The same with the file's own header, of a file that Quern reads.
static inline size_t elf_file_open(int fd, Elf64_Phdr segments[ELF_FILE_SEGMENTS]) {
    Elf64_Ehdr header;
    if (!elf_file_read(fd, 0, &header, sizeof header) || !elf_view_is_known(&header))
        return 0;
    return elf_file_segments(fd, &header, segments);
}

#endif
