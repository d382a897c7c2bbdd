// The end of a log: events counted in all, and rates of misses.
#ifndef QUERN_REPORT_EVENT_TEXT_H
#define QUERN_REPORT_EVENT_TEXT_H

#include <stdbool.h>

#include "base/text.h"
#include "report/callgrind/call_graph.h"

// As cachegrind lays it out, or callgrind.
void event_text(const struct call_graph *, bool cachegrind, struct text *);
// With a comma after every third digit.
void event_number(uint64_t number, struct text *);

#endif
