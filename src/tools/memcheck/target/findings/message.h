// A finding on its way to the supervisor: as its finder made it, and the message that is sent. For
// the files of findings/.
//
// A message is made only for the first finding of a context. It contains addresses; the supervisor
// has the symbols.
#ifndef QUERN_MEMCHECK_FINDINGS_MESSAGE_H
#define QUERN_MEMCHECK_FINDINGS_MESSAGE_H

#include <stdint.h>

#include "tools/memcheck/target/requests.h"
#include "wire/findings.h"

struct new_finding {
    struct finding_facts facts;
    const char *names[2];                 // NULL: none
    uint32_t origin;                      // of an undefined value (findings.h)
    const struct tool_stack_words *stack; // NULL: the calling thread's
    uint32_t made, freed;                 // stacks (stacks.h), 0: none, or the place's
    uint64_t detail; // equal for all findings of a context, as kind and callers are
};

// Counts the finding, and sends it if it is the first of its context. Uses vector registers.
void findings_take(void *new_finding);

enum { MESSAGE_NAME = 4096 };

struct finding_message {
    struct wire_finding head;
    const char *names[2];                 // NULL: none
    const struct tool_stack_words *stack; // as in new_finding
    uint32_t stacks[FINDING_STACKS];      // numbers (stacks.h), but for the first; 0: none
    struct request_block named;           // by the target
    char path[MESSAGE_NAME];              // of a mapped file
    // What follows the head: stacks and names.
    _Alignas(8) char rest[FINDING_STACKS * FINDING_STACK_MAX * sizeof(uint64_t) + 2 * MESSAGE_NAME];
};

// Finds the place of the address: blocks first, then stacks, then mappings. The supervisor, which
// has the symbols, looks at what lies in a module.
void message_find_place(struct finding_message *);

#endif
