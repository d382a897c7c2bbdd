// quern-exporter: what talks to the engines of a fleet. `quern` starts it; it is a program of its
// own, so that `quern` need not load the libraries of stores.
#include <stdio.h>
#include <string.h>

#include "fleet/exporter.h"

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "run") == 0)
        return exporter_run();
    fputs("quern-exporter: this is a part of Quern; see quern --help\n", stderr);
    return 1;
}
