/*
 * symtab: the symbol tables of an image, with one name for each address.
 *
 * One address may have many names (malloc, __libc_malloc, __GI___libc_malloc). The choice is
 * Valgrind's, because suppression files contain it: the shortest, not counting the version; then
 * the one with a version; then the first in byte order. Inside guard_run only.
 */
#ifndef QUERN_SYMBOLS_SYMTAB_H
#define QUERN_SYMBOLS_SYMTAB_H

#include "symbols/image.h"

/* Fills image->functions and image->variables. */
void symtab_read(struct image *image);
void symtab_free(struct image_symbols *symbols);

/* True if name a is shown rather than b. */
bool symtab_prefer(const char *a, const char *b);

#endif
