// How the supervisor sees callgrind and cachegrind.
#include "supervisor/tool.h"
#include "tools/callgrind/supervisor/options.h"

const struct supervisor_tool supervisor_callgrind = {
    .name = "callgrind",
    .help = "call graph with instruction and cache counts",
    .options = callgrind_options,
};

const struct supervisor_tool supervisor_cachegrind = {
    .name = "cachegrind",
    .help = "instruction and cache counts per source line",
    .options = cachegrind_options,
};
