// quern-exporter: what talks to the engines of a fleet. `quern` starts it; it is a program of its
// own, so that `quern` need not load the libraries of stores.
#include <stdio.h>
#include <string.h>

#include "fleet/ask.h"
#include "fleet/exporter.h"

int main(int argc, char **argv) {
    const char *task = argc > 1 ? argv[1] : "";
    if (strcmp(task, "run") == 0)
        return exporter_run();
    if (strcmp(task, "query") == 0)
        return ask_query(argv + 2);
    if (strcmp(task, "diff") == 0)
        return ask_diff(argv + 2);
    if (strcmp(task, "push") == 0)
        return send_files(argv + 2);
    fputs("quern-exporter: this is a part of Quern; see quern --help\n", stderr);
    return 1;
}
