/*
 * demangle: from linkage names to those of the source, for C++ and Rust (legacy and v0), and from
 * functions that stand for others to those (base/redirection.h).
 *
 * Rust's legacy hash (::h0123456789abcdef) is dropped. Names come from a hostile file: one that
 * would expand beyond all measure is left as it is. Supervisor only, outside of guard_run or
 * inside.
 */
#ifndef QUERN_SYMBOLS_DEMANGLE_H
#define QUERN_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the source name of linkage into buffer; false if it has none other than itself. */
bool demangle(const char *linkage, char *buffer, size_t size);

#endif
