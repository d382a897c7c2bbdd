// Reading the walked stack's memory, and DWARF expressions over it. Internal to src/unwind. Any
// thread and any signal handler may call it: it allocates nothing and takes no lock.
#ifndef QUERN_UNWIND_EXPRESSION_H
#define QUERN_UNWIND_EXPRESSION_H

#include <string.h>

#include "unwind/unwind.h"

static inline bool memory_read(const struct unwind_memory *memory, uint64_t address,
                               uint64_t *word) {
    if (address >= memory->low && address < memory->high && memory->high - address >= 8) {
        memcpy(word, (const void *)address, 8);
        return true;
    }
    return memory->read && memory->read(memory->context, address, word);
}

enum expression_status { EXPRESSION_OK, EXPRESSION_UNREADABLE, EXPRESSION_BAD };

// Evaluates an expression of call frame information. initial, if not NULL, is on the stack at the
// start (the CFA, for the rules of registers). Expressions may loop: their steps are bounded.
enum expression_status unwind_expression_evaluate(const uint8_t *bytes, size_t size,
                                                  const struct unwind_registers *registers,
                                                  const struct unwind_memory *memory,
                                                  const uint64_t *initial, uint64_t *result);

#endif
