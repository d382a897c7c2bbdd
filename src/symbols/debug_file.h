/*
 * debug_file: where the separate debug file of an object lies.
 *
 * By build-id below /usr/lib/debug and the extra path; then by .gnu_debuglink beside the object,
 * in .debug, and below the same two roots, if its checksum is right; then, if permitted and
 * DEBUGINFOD_URLS is set, from a debuginfod server. Called back by libdwfl. Inside guard_run only.
 */
#ifndef QUERN_SYMBOLS_DEBUG_FILE_H
#define QUERN_SYMBOLS_DEBUG_FILE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>

/* What libdwfl knows when it asks, and our own options. */
struct debug_file_question {
    Dwfl_Module *module;
    void **user;
    const char *module_name;
    Dwarf_Addr base;
    const char *file_name; /* NULL when it asks for a dwz file */
    const char *link;      /* from .gnu_debuglink or .gnu_debugaltlink, or NULL */
    GElf_Word crc;
    const char *extra_path; /* or NULL */
    bool debuginfod;
};

/* An open descriptor, and its path, to be freed, in *found_name; or -1. */
int debug_file_find(const struct debug_file_question *question, char **found_name);

#endif
