// Whose code without symbols is. Several functions may run it: two that go on in one piece by a
// jump, or one that is called here and jumped to there. Costs are those of the function that runs
// (events.h), but counters are by the function that the code belongs to; so each place where
// control may come in has one owner, and wherever it passes from one's code to another's,
// event_cross sees to it that counts go to the right area.
//
// A place is claimed by the function whose code leads there first: by a direct jump, a branch, by
// going on, or by a call, which claims it for a function that begins there. What follows a call is
// expected to be the caller's, no more: not all calls return, and then it may be anybody's.
//
// All functions are called while code is translated, with the engine's lock held.
#ifndef QUERN_TOOLS_CALLGRIND_OWNERS_H
#define QUERN_TOOLS_CALLGRIND_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

uint32_t owner_at(uint64_t pc); // 0: nobody's yet
// It is the function's unless it was another's before; whose it is.
uint32_t owner_claim(uint64_t pc, uint32_t function);
void owner_expect(uint64_t pc, uint32_t function);
uint32_t owner_expected(uint64_t pc); // 0: nobody
// It was claimed by one and expected to be another's, who may come there without an event.
bool owner_is_doubtful(uint64_t pc);

#endif
