// The command line of `cargo quern`, taken apart:
//
//     cargo quern [QUERN OPTIONS] COMMAND [run|test|bench] [CARGO OPTIONS] [-- ARGUMENTS]
//
// Words before COMMAND are for quern, words behind it for cargo. COMMAND is run, test, bench, leaks
// or the name of a tool.
#ifndef QUERN_CARGO_COMMAND_H
#define QUERN_CARGO_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

struct command {
    const char **options; // for quern: those of COMMAND first, so that the user's count more
    size_t option_count;
    const char *verb;    // for cargo: run, test or bench
    char **rest;         // for cargo: all words behind the verb; NULL-terminated
    const char *profile; // named by --profile; NULL: none
    const char *triple;  // named by --target; NULL: none
    bool wants_help, wants_version;
};

// Reads the words behind `cargo quern`. NULL, or a message that the caller frees.
char *command_read(struct command *command, char **words);
void command_free(struct command *command);

void command_help(void);

#endif
