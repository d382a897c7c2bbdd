/*
 * demangle: turns linkage names into source names, for C++ and Rust (legacy and v0). It also turns
 * the name of a replacement into that of the replaced function (base/redirection.h).
 *
 * It drops Rust's legacy hash (::h0123456789abcdef). Names come from a hostile file: a name that
 * would expand too far stays as it is. Supervisor only, outside of guard_run or inside.
 */
#ifndef QUERN_SYMBOLS_DEMANGLE_H
#define QUERN_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the source name of linkage into buffer; false if it is the same. */
bool demangle(const char *linkage, char *buffer, size_t size);

#endif
