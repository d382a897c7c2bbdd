// Telling findings apart: the number of the context that a finding belongs to.
//
// Two tables: by four callers and, once so many contexts have been shown that less detail has to
// do, by two, as Valgrind does. Looking up takes no lock; entries are only ever added, under one.
#ifndef QUERN_MEMCHECK_CONTEXTS_H
#define QUERN_MEMCHECK_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// CONTEXTS_IN_DETAIL: after so many that were shown, less has to do.
enum { CONTEXT_CALLERS = 4, CONTEXTS_IN_DETAIL = 100 };
#define CONTEXT_NONE UINT32_MAX // there are too many to tell apart

void contexts_start(void);
void contexts_forked(void);
uint32_t context_of(unsigned kind, uint64_t detail, const uint64_t *pcs, size_t count,
                    bool *is_new);

#endif
