// How the supervisor sees massif and heap.
#include "supervisor/tool.h"
#include "tools/heap/supervisor/options.h"

const struct supervisor_tool supervisor_massif = {
    .name = "massif",
    .help = "heap profile over time",
    .takes = TOOL_TAKES_RESULTS "|" TOOL_TAKES_SUPPRESSIONS,
    .options = massif_options,
};

const struct supervisor_tool supervisor_heap = {
    .name = "heap",
    .help = "recording and summary of the heap",
    .takes = TOOL_TAKES_RESULTS "|" TOOL_TAKES_SUPPRESSIONS,
    .options = heap_options,
};
