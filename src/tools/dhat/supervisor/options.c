// The options of dhat.
#include "base/option_table.h"
#include "tools/dhat/supervisor/options.h"

const struct option dhat_options[] = {
    {CHOICE("mode", "heap|copy|ad-hoc|native", "heap"),
     .help = "what to record; native: no accesses, at native speed"},
    {NAMED("dhat-out-file", "dhat.out.%p"), .help = "output file"},
    {0},
};
