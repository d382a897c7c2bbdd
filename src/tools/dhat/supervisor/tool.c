// How the supervisor sees dhat.
#include "supervisor/tool.h"
#include "tools/dhat/supervisor/options.h"

const struct supervisor_tool supervisor_dhat = {
    .name = "dhat",
    .help = "profile of how heap blocks are used",
    .takes = TOOL_TAKES_RESULTS,
    .options = dhat_options,
};
