#include <stdio.h>

#include "engine/log.h"
#include "wire/wire_target.h"

void log_debug(const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    wire_send_debug(text);
}

void log_notice_list(int level, const char *format, va_list arguments) {
    char text[1024];
    vsnprintf(text, sizeof text, format, arguments);
    wire_send_notice(level, text);
}

void log_notice(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    log_notice_list(0, format, arguments);
    va_end(arguments);
}
