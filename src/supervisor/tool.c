#include "supervisor/tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/vector.h"

static char *format_text(const char *format, va_list arguments) {
    char *text;
    if (vasprintf(&text, format, arguments) < 0)
        abort();
    return text;
}

void tool_refuse(struct tool_setup *setup, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    tool_refuse_for(setup, format_text(format, arguments));
    va_end(arguments);
}

void tool_refuse_for(struct tool_setup *setup, char *reason) {
    if (!setup->problem)
        setup->problem = reason;
    else
        free(reason);
}

void tool_send_option(struct tool_setup *setup, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    *vector_push(setup->options, setup->option_count) = format_text(format, arguments);
    va_end(arguments);
}
