/*
 * units: compilation units, the functions inlined in them, and their lines, from DWARF.
 *
 * An index of the address ranges of all units is built once. A unit's own tree is read at the first
 * look-up of an address in it. Addresses are vaddrs of the image. Inside guard_run only.
 *
 * Words
 *   scope  a function with code of its own, or an inlined call; its parent is the scope it was
 *          inlined into
 */
#ifndef QUERN_SYMBOLS_UNITS_H
#define QUERN_SYMBOLS_UNITS_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct units;

/* Strings belong to the DWARF data. */
struct units_frame {
    const char *name;    /* DW_AT_name */
    const char *linkage; /* or NULL */
    const char *path;    /* of the source file, or NULL */
    const char *file;    /* the compiler's name for the file, the end of path: x.c or even a/x.c */
    const char *folder;  /* base of a relative path, or NULL */
    uint32_t line;       /* or 0 */
    uint32_t declared;   /* the line of its declaration, or 0 */
    const char *declared_in; /* the unit's main file if that declares it, or NULL */
    bool inlined;
    uint64_t low; /* lowest address of the function; 0 for inlined frames */
};

/* The file that declares the function at vaddr, or the one inlined there at this level, from 0 for
 * the innermost; NULL: not known. Reads the unit's table of files. */
const char *units_declaring_file(struct units *units, uint64_t vaddr, size_t level);

/* bias is what libdwfl adds to the addresses of dwarf; *bytes grows with what is read. */
struct units *units_new(Dwarf *dwarf, uint64_t bias, size_t *bytes);
void units_free(struct units *units);

struct units_request {
    bool no_inlined; /* one frame, with the line at vaddr */
    bool no_lines;   /* names alone, without files and lines */
};

/*
 * Frames at vaddr, innermost first; at most max. A frame has no name where only lines are known.
 */
size_t units_find(struct units *units, uint64_t vaddr, struct units_request request,
                  struct units_frame *frames, size_t max);

#endif
