// cargo-quern: `cargo quern COMMAND` builds a Rust program with cargo and runs it under quern.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "cargo/command.h"
#include "cargo/handover.h"
#include "config.h"

enum { STATUS_FAILED = 1, STATUS_NOT_RUNNABLE = 126, STATUS_NOT_FOUND = 127 };

static int fail(char *message) {
    fprintf(stderr, "cargo-quern: %s\n", message);
    free(message);
    return STATUS_FAILED;
}

// Becomes cargo. Returns only if that fails.
static int run_cargo(const struct command *command) {
    const char *cargo = getenv("CARGO"); // set by the cargo that has called this program
    const char **words = NULL;
    size_t count = 0;
    if (!cargo)
        cargo = "cargo";
    *vector_push(words, count) = cargo;
    *vector_push(words, count) = command->verb;
    char **rest = command->rest;
    do
        *vector_push(words, count) = *rest;
    while (*rest++);
    execvp(cargo, (char **)words);
    fprintf(stderr, "cargo-quern: cannot run '%s': %s\n", cargo, strerror(errno));
    free(words);
    return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUNNABLE;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], RUNNER_WORD) == 0)
        return handover_run(argv + 2);
    // cargo passes the name of the subcommand on.
    char **words = argv + (argc > 0) + (argc > 1 && strcmp(argv[1], "quern") == 0);
    struct command command;
    char *error = command_read(&command, words);
    if (!error && command.wants_help) {
        command_help();
        command_free(&command);
        return 0;
    }
    if (!error && command.wants_version) {
        puts("cargo-quern-" QUERN_VERSION);
        return 0;
    }
    if (!error)
        error = handover_prepare(&command);
    int status = error ? fail(error) : run_cargo(&command);
    command_free(&command);
    return status;
}
