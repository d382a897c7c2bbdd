#include "cli/waiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/progress.h"

#define FIRST_MS 2000
#define NEXT_MS  200

static struct {
    int64_t started, shown; // milliseconds
    bool is_visible;
} line;

static void erase(void) {
    if (line.is_visible)
        fputs("\r\033[K", stderr);
    line.is_visible = false;
}

static bool see(void *context, const char *what, uint64_t done, uint64_t total) {
    int64_t time = clock_milliseconds();
    if (!what) {
        erase();
        return true;
    }
    if (time - line.started < FIRST_MS || (line.is_visible && time - line.shown < NEXT_MS))
        return true;
    line.shown = time;
    line.is_visible = true;
    fprintf(stderr, "\r\033[Kquern: %s", what);
    if (total)
        fprintf(stderr, ", %d %%",
                (int)(done < total ? 100.0 * (double)done / (double)total : 100));
    fputs(" (Ctrl+C stops it)", stderr);
    fflush(stderr);
    return true;
}

void waiting_show(void) {
    static const struct progress_watcher watcher = {.see = see};
    const char *terminal = getenv("TERM");
    if (!isatty(STDERR_FILENO) || !terminal || strcmp(terminal, "dumb") == 0)
        return;
    line.started = clock_milliseconds();
    progress_watch(&watcher);
    atexit(erase);
}
