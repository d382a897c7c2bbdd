#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/fatal.h"

void fatal(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof text - 2)
        length = sizeof text - 2;
    text[length++] = '\n';
    if (write(2, "quern: ", 7) + write(2, text, length) < 0)
        _exit(1);
    syscall(SYS_exit_group, 1);
    __builtin_unreachable();
}
