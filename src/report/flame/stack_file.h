// Files of stacks with a number each: the profile that --tool=flame writes, and plain folded
// stacks, anyone's (docs/formats.md).
//
// A profile begins with what is known of it, and its frames say which library a function is in:
//
//     # quern stacks: "1"
//     # command: "perl sort.pl"
//     perl`main;perl`Perl_runops_standard;libc.so.6`memcpy 42
//
// Supervisor context. Nothing in a file is believed.
#ifndef QUERN_REPORT_STACK_FILE_H
#define QUERN_REPORT_STACK_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/stacks/calltree.h"

// Texts are to be freed when a file was read, by stack_file_free; NULL: not known.
struct stack_info {
    char *command;
    char *unit;         // of the numbers: "samples"
    char *details;      // in words
    uint64_t frequency; // samples in a second; 0: not known
};

// Whether a file that begins like this is one of these. Any text whose first line ends with a
// number is, so ask for all other formats first.
bool stack_file_is_one(const char *start, size_t size);
// Adds all stacks to the tree, which is not finished then. NULL, or what is wrong, to be freed.
char *stack_file_read(FILE *in, struct calltree *, struct stack_info *);
void stack_file_free(struct stack_info *);
// A profile. The tree must be finished.
void stack_file_write(FILE *out, const struct calltree *, const struct stack_info *);

#endif
