// A finding in the making, and what is known at once about the address it is about.
#ifndef QUERN_MEMCHECK_DESCRIBE_H
#define QUERN_MEMCHECK_DESCRIBE_H

#include <stdint.h>

#include "tools/memcheck/target/requests.h"
#include "wire/findings.h"

enum { DESCRIPTION_NAME = 4096 };

struct description {
    struct finding_facts facts;
    const char *names[2];
    uint32_t made_at, freed_at, origin; // stacks.h
    struct request_block named;         // by the target
    char path[DESCRIPTION_NAME];        // of a mapped file
    char variable[FINDING_STACKS * FINDING_STACK_MAX * sizeof(uint64_t) + 2 * DESCRIPTION_NAME];
};

// Fills in the place of facts.address: blocks first, then stacks, then mappings. What lies in a
// module is left to the supervisor, which has the symbols.
void describe_address(struct description *);

#endif
