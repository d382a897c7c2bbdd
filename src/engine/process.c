#include "engine/process.h"

struct process process = {.wire_fd = -1, .config_fd = -1, .shadow_fd = -1, .debug_fd = -1};
