/*
 * variables: finds the variable, and the part of it, at an address, from DWARF.
 *
 * Every look-up reads the DWARF data anew, because look-ups are rare: they describe the address of
 * an error (--read-var-info). Inside guard_run only.
 */
#ifndef QUERN_SYMBOLS_VARIABLES_H
#define QUERN_SYMBOLS_VARIABLES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct variable {
    char path[256];   /* name, or name[3].member */
    const char *file; /* where it is declared; belongs to the DWARF data; NULL if not known */
    int line;
    uint64_t offset; /* of the address in that part */
    bool is_whole;   /* the path is the name alone */
};

/* A global variable at vaddr. bias is what libdwfl adds to the addresses of dwarf. */
bool variables_find_global(Dwarf *dwarf, uint64_t bias, uint64_t vaddr, struct variable *);

/*
 * A local variable or parameter of the function at vaddr whose frame ends at frame_end (the stack
 * pointer of its caller), at that address of memory.
 */
bool variables_find_local(Dwarf *dwarf, uint64_t bias, uint64_t vaddr, uint64_t frame_end,
                          uint64_t address, struct variable *);

#endif
