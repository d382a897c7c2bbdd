#include "engine/process.h"

struct process process = {.wire_fd = -1, .config_fd = -1, .ones_fd = -1};
