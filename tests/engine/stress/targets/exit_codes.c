// Runs as several commands: its argument says how to end.
#include "stress.h"
#include <sys/resource.h>

static void farewell(void) {
    puts("atexit ran");
}

int main(int argc, char **argv) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    const char *how = argc > 1 ? argv[1] : "";
    atexit(farewell);
    printf("ending by %s\n", how);
    if (strcmp(how, "_exit") == 0) {
        fflush(stdout);
        _exit(200);
    }
    if (strcmp(how, "exit") == 0)
        exit(77);
    if (strcmp(how, "quick") == 0)
        quick_exit(78);
    fflush(stdout);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "term") == 0)
        raise(SIGTERM);
    if (strcmp(how, "segv") == 0)
        *(volatile int *)4 = 1;
    if (strcmp(how, "ill") == 0)
        __builtin_trap();
    if (strcmp(how, "syscall") == 0)
        syscall(SYS_exit, 79);
    return 300;
}
