/*
 * unpack: debug sections that are compressed by zstd. elfutils reads them from version 0.189 on,
 * and only if it was built with zstd; so files that have them are unpacked here. Supervisor only.
 */
#ifndef QUERN_SYMBOLS_UNPACK_H
#define QUERN_SYMBOLS_UNPACK_H

/*
 * The same ELF file with these sections as they were before: a new descriptor, and fd is closed. If
 * there is none of them, or the file is damaged, the result is fd.
 */
int unpack_sections(int fd);

#endif
