// Numbered contexts (wire/call_counts.h): a function has one for each chain of callers and each
// level of recursion, as far as --separate-callers and --separate-recs ask for it.
//
// The functions may be called from fast calls: general registers only.
#ifndef QUERN_TOOLS_CALLGRIND_CALLERS_H
#define QUERN_TOOLS_CALLGRIND_CALLERS_H

#include "tools/callgrind/target/events.h"

extern bool callers_on;
extern uint8_t *callers_wanted, *levels_wanted; // by function: how many make contexts
extern bool levels_skip_direct;                 // a function that calls itself stays at its level

void callers_start(void);
void callers_thread_start(struct thread *);
void callers_thread_end(struct thread *);

// The context of a function that is called by what runs now and is active for the depth-th time.
uint32_t callers_find(struct thread *, uint32_t function, uint32_t depth);
// The same context, for code that belongs to other functions; and back.
uint32_t callers_alone(struct thread *, uint32_t context);
uint32_t callers_shared(struct thread *, uint32_t context);
// Where its costs go.
static inline uint32_t callers_area(const struct thread *thread, uint32_t context) {
    return thread->contexts[context].area;
}

#endif
