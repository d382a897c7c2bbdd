// The tool that adds nothing: the target runs as translated as under any other tool, and ends as it
// would have. It is the reference for tools, and the price of translation itself.
#include "tools/tools.h"

const struct tool tool_none = {.name = "none"};
