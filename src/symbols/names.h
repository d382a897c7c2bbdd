/*
 * names: strings stored once, for as long as their owner lives.
 *
 * Names from the symbol tables must outlive the files they were read from, and reports show the
 * same few names again and again. Supervisor only.
 */
#ifndef QUERN_SYMBOLS_NAMES_H
#define QUERN_SYMBOLS_NAMES_H

#include <stddef.h>

struct names;

struct names *names_new(void);
void names_free(struct names *names);

/* The kept copy of text[0, length). */
const char *names_keep_part(struct names *names, const char *text, size_t length);
/* The same for a whole string, cut at NAMES_LONGEST bytes; NULL gives NULL. */
const char *names_keep(struct names *names, const char *text);

#define NAMES_LONGEST 65536

#endif
