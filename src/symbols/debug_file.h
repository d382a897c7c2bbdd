/*
 * debug_file: finds the separate debug file of an object.
 *
 * It searches in this order: by build-id below /usr/lib/debug and the extra path; by .gnu_debuglink
 * beside the object, in .debug, and below the same two roots, if the checksum matches; on a
 * debuginfod server (servers.h). libdwfl calls it back, inside guard_run only.
 */
#ifndef QUERN_SYMBOLS_DEBUG_FILE_H
#define QUERN_SYMBOLS_DEBUG_FILE_H

#include "symbols/servers.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>

/* What libdwfl knows when it calls, and our own options. */
struct debug_file_question {
    Dwfl_Module *module;
    void **user;
    const char *module_name;
    Dwarf_Addr base;
    const char *file_name; /* NULL when it asks for a dwz file */
    const char *link;      /* from .gnu_debuglink or .gnu_debugaltlink, or NULL */
    GElf_Word crc;
    bool any_checksum;       /* take a file whose checksum differs (--allow-mismatched-debuginfo) */
    const char *extra_path;  /* or NULL */
    struct servers *servers; /* or NULL */
};

/* Returns an open descriptor and stores its path, which the caller frees, in *found_name; or -1. */
int debug_file_find(const struct debug_file_question *question, char **found_name);

#endif
