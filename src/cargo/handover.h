// From `cargo quern` through cargo to the program.
//
// `cargo quern` does not look for executables itself. It makes itself cargo's runner: cargo builds,
// chooses the executables, and starts `cargo-quern --as-runner EXECUTABLE ARGUMENTS` for each, with
// the working directory, the environment ([env], library paths) and the order that it would give to
// the executable. The runner takes back the variables that the first half has set, so the program
// sees the environment of `cargo run`, and becomes quern.
#ifndef QUERN_CARGO_HANDOVER_H
#define QUERN_CARGO_HANDOVER_H

#include "cargo/command.h"

#define RUNNER_WORD "--as-runner"

// Sets the variables that make cargo build with debug information and run this program. NULL, or a
// message that the caller frees.
char *handover_prepare(const struct command *command);

// The other half: becomes quern, with these words for the program. Returns only if that fails: the
// exit status, after a message.
int handover_run(char **program);

#endif
