// The options of callgrind and cachegrind.
#ifndef QUERN_TOOLS_CALLGRIND_OPTIONS_H
#define QUERN_TOOLS_CALLGRIND_OPTIONS_H

#include "base/option.h"

extern const struct option callgrind_options[];  // ends with an entry without a name
extern const struct option cachegrind_options[]; // ends with an entry without a name

#endif
