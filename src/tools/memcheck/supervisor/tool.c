// How the supervisor sees memcheck.
#include "supervisor/tool.h"
#include "tools/memcheck/supervisor/options.h"

const struct supervisor_tool supervisor_memcheck = {
    .name = "memcheck",
    .help = "detector of memory errors and leaks",
    .finds_errors = true,
    .options = memcheck_options,
};
