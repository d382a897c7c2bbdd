#include "tools/shared/string_functions.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void end_program(void *name) {
    char text[128];
    snprintf(text, sizeof text, "*** %s: buffer overflow detected ***: program terminated",
             (const char *)name);
    tool_print(text, true);
    kill(getpid(), SIGABRT);
}

void string_functions_overflow(const char *name) {
    tool_with_vectors(end_program, (void *)name);
}
