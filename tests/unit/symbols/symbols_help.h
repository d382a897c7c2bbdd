/*
 * symbols_help: what the symbol tests share: a folder of their own to compile targets in, and
 * objects mapped without a process.
 */
#ifndef QUERN_TESTS_SYMBOLS_HELP_H
#define QUERN_TESTS_SYMBOLS_HELP_H

#include "symbols/symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A folder that is removed at exit; commands run in it. */
const char *help_folder(void);
/* The path of a file in it, good until the sixteenth call from now. */
const char *help_path(const char *name);
/* Runs a shell command in the folder, with $T for the folder of target sources. True if it
 * succeeds; its output goes to the file "output" there. */
__attribute__((format(printf, 1, 2))) bool help_run(const char *format, ...);
bool help_has(const char *program);

/* Maps the segments of the ELF file at path as the loader would, at its own addresses + bias. */
bool help_map(struct symbols *symbols, pid_t pid, const char *path, uint64_t bias);

/* Addresses spread over .text, at most max; the number. To be freed. */
size_t help_text_addresses(const char *path, size_t max, uint64_t **addresses);
/* The value of a symbol in .symtab, or 0. */
uint64_t help_symbol(const char *path, const char *name);

double help_seconds(void);

#endif
