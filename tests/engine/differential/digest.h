// Reduces the outcome of a form to hashes, or prints it in full.
#ifndef DIFFERENTIAL_DIGEST_H
#define DIFFERENTIAL_DIGEST_H

#include "state.h"

#include <stdbool.h>

struct digest {
    uint64_t hash;         // everything that is compared, but not
    uint64_t pointer_hash; // where the last x87 instruction and its operand were
    bool print;
};

// Adds the outcome at CONTEXT_OUT and changed memory, which is restored.
void digest_add(struct digest *digest, const struct form *form, unsigned number);

// '.' or a letter for the signal.
char digest_outcome(void);

#endif
