// The options of flame.
#ifndef QUERN_TOOLS_FLAME_OPTIONS_H
#define QUERN_TOOLS_FLAME_OPTIONS_H

#include "base/option.h"

extern const struct option flame_options[]; // ends with an entry without a name

#endif
