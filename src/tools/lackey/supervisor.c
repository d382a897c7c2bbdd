// lackey's target half prints what it counts by itself.
#include "supervisor/tool.h"

const struct supervisor_tool supervisor_lackey = {
    .name = "lackey",
    .help = "example tool that counts what the program executes",
};
