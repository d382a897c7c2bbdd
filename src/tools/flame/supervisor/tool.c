// How the supervisor sees flame.
#include "supervisor/tool.h"
#include "tools/flame/supervisor/options.h"

const struct supervisor_tool supervisor_flame = {
    .name = "flame",
    .help = "flame graph of CPU time, sampled at native speed",
    .options = flame_options,
};
