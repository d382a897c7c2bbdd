// The options of memcheck.
#ifndef QUERN_TOOLS_MEMCHECK_OPTIONS_H
#define QUERN_TOOLS_MEMCHECK_OPTIONS_H

#include "base/option.h"

extern const struct option memcheck_options[]; // ends with an entry without a name

#endif
