#include <string.h>

#include "tools/tools.h"

const struct tool *tools_find(const char *name) {
    static const struct tool *const all[] = {
#define TARGET(id) &tool_##id,
#include "tools/tools.inc"
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}
