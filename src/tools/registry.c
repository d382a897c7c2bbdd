// The supervisor's table of tools, from the one in src/tools/meson.build.
#include <string.h>

#include "supervisor/tool.h"

#define SUPERVISOR(id) extern const struct supervisor_tool supervisor_##id;
#include "tools/tools.inc"

const struct supervisor_tool *const tool_table[] = {
#define SUPERVISOR(id) &supervisor_##id,
#define PLANNED(n, h)  &(const struct supervisor_tool){.name = n, .help = h, .is_planned = true},
#include "tools/tools.inc"
};
const size_t tool_count = sizeof tool_table / sizeof *tool_table;

const struct supervisor_tool *tool_find(const char *name) {
    for (size_t i = 0; i < tool_count; i++) {
        const char *plain = tool_table[i]->plain_name;
        if (strcmp(tool_table[i]->name, name) == 0 || (plain && strcmp(plain, name) == 0))
            return tool_table[i];
    }
    return NULL;
}
