// The number of the context that a finding belongs to.
//
// Findings are compared by four callers. After CONTEXTS_IN_DETAIL contexts have been shown, they
// are compared by two, as in Valgrind. So there are two tables. A lookup takes no lock; entries are
// only ever added, under one.
#ifndef QUERN_MEMCHECK_CONTEXTS_H
#define QUERN_MEMCHECK_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTEXT_CALLERS = 4, CONTEXTS_IN_DETAIL = 100 };
#define CONTEXT_NONE UINT32_MAX // there is no room for another one

void contexts_start(void);
void contexts_forked(void);
uint32_t context_of(unsigned kind, uint64_t detail, const uint64_t *pcs, size_t count,
                    bool *is_new);

#endif
