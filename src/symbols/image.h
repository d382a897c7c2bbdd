/*
 * image: one ELF file, with all debug information that can be found for it.
 *
 * All addresses here are the file's own virtual addresses ("vaddr"); symbols.c knows which process
 * maps the file where. All functions except image_new and image_discard may raise signals on a
 * damaged file: call them inside guard_run only. After a fault the image is abandoned, not freed.
 *
 * libdwfl finds .symtab, .dynsym, .gnu_debugdata, build-id and .gnu_debuglink files, dwz files,
 * compressed sections, and split DWARF in .dwo files. elfutils 0.188 does not read packages of
 * split units (.dwp): such files have lines and symbols, but no inlined functions.
 *
 * Supervisor only.
 */
#ifndef QUERN_SYMBOLS_IMAGE_H
#define QUERN_SYMBOLS_IMAGE_H

#include "symbols/ranges.h"

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct servers;

struct image_options {
    const char *extra_debug_path; /* or NULL */
    struct servers *servers;      /* or NULL */
    bool any_checksum;            /* of a debug file */
};

struct image_segment {
    uint64_t vaddr, offset, file_size, memory_size;
    bool executable;
};

/* The symbol with the best name at its address. name belongs to the file. */
struct image_symbol {
    uint64_t low, size;
    const char *name;
    bool is_indirect; /* STT_GNU_IFUNC: the code there chooses the function */
};

struct image_symbols {
    struct image_symbol *items;
    size_t count;
    struct ranges ranges;
};

struct units;

struct image {
    Dwfl *dwfl;
    Dwfl_Module *module;
    Dwfl_Callbacks callbacks;
    char *debug_path; /* what libdwfl searches */
    char *extra_debug_path;
    bool any_checksum;
    struct servers *servers;
    bool fixed; /* ET_EXEC: must lie at its own addresses */
    struct image_segment *segments;
    size_t segment_count;
    struct image_symbols functions, variables;
    bool symbols_read;
    struct units *units; /* NULL until asked for */
    bool units_read;
    size_t bytes; /* estimate of what the tables take, libdw's included */
};

struct image *image_new(const struct image_options *options);
/* Reads the ELF header and the segments. Always takes over fd. False: not an ELF file. */
bool image_open(struct image *image, const char *path, int fd);
/* Frees everything; inside guard_run. */
void image_close(struct image *image);
/* Frees only what does not belong to libdw; for use after a fault. */
void image_discard(struct image *image);

/* Where the function at vaddr begins, as the unwind data has it; 0: that is not known. */
uint64_t image_function_start(struct image *image, uint64_t vaddr);

/* The build-id, or 0 bytes. */
size_t image_build_id(const struct image *image, const uint8_t **bytes);

const struct image_symbol *image_function(struct image *image, uint64_t vaddr);
const struct image_symbol *image_variable(struct image *image, uint64_t vaddr);

/* What the section at vaddr holds, in Valgrind's words: Text, Data, BSS, GOT, GOTPLT or PLT; else
 * NULL. */
const char *image_section(struct image *image, uint64_t vaddr);

/* Whether the file itself contains debug information. */
bool image_has_debug(struct image *image);
/* The compilation units, or NULL if there is no DWARF (units.h). */
struct units *image_units(struct image *image);

#endif
