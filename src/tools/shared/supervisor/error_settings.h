// Options that the tools with a leak search share: kinds of leaks, suppressions, lists at the end.
// For their `settings` hooks.
#ifndef QUERN_TOOLS_ERROR_SETTINGS_H
#define QUERN_TOOLS_ERROR_SETTINGS_H

#include "supervisor/tool.h"

enum leak_check { LEAK_CHECK_NO, LEAK_CHECK_SUMMARY, LEAK_CHECK_FULL };

// The value of --leak-check.
enum leak_check error_settings_leak_check(const struct option_values *values);
// Whether errors and used suppressions are listed at the end.
bool error_settings_list(const struct option_values *values);
// Reads the default suppressions and those of --suppressions. NULL, or a message to be freed.
char *error_settings_suppressions(const struct tool_setup *setup,
                                  struct suppressions *suppressions);

#endif
