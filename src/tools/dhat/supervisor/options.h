// The options of dhat.
#ifndef QUERN_TOOLS_DHAT_OPTIONS_H
#define QUERN_TOOLS_DHAT_OPTIONS_H

#include "base/option.h"

extern const struct option dhat_options[]; // ends with an entry without a name

#endif
