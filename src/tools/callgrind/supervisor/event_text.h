// The end of a log: events counted in all, and rates of misses.
#ifndef QUERN_CALLGRIND_EVENT_TEXT_H
#define QUERN_CALLGRIND_EVENT_TEXT_H

#include <stdbool.h>

#include "base/text.h"
#include "profile/costs/call_graph.h"

// As cachegrind lays it out, or callgrind.
void event_text(const struct call_graph *, bool cachegrind, struct text *);

#endif
