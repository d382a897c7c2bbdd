// The smallest tool: no options, no hooks.
#include "supervisor/tool.h"

const struct supervisor_tool supervisor_none = {
    .name = "none",
    .help = "no analysis; reports only a fatal signal",
};
