#include <string.h>

#include "tools/tools.h"

const struct tool *tools_find(const char *name) {
    static const struct tool *const all[] = {&tool_none,       &tool_lackey,   &tool_callgrind,
                                             &tool_cachegrind, &tool_memcheck, &tool_heap,
                                             &tool_massif,     &tool_dhat};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}
