// The options of massif and heap.
#ifndef QUERN_TOOLS_HEAP_OPTIONS_H
#define QUERN_TOOLS_HEAP_OPTIONS_H

#include "base/option.h"

extern const struct option massif_options[]; // ends with an entry without a name
extern const struct option heap_options[];   // ends with an entry without a name

#endif
