// The names of other programs that Quern answers to: links with these names do what those programs
// do (`quern names DIRECTORY` makes them).
#ifndef QUERN_CLI_NAMES_H
#define QUERN_CLI_NAMES_H

#include <stdbool.h>

// The command line as Quern's own: argv itself if the program was called by its own name, or new
// words. NULL after a message: the name is not known, or the words are invalid.
char **names_translate(char **argv);
// Whether the program was called as Valgrind, and claims to be of a version of it.
bool names_claim_valgrind(void);
#define NAMES_VALGRIND_VERSION "3.28.0"

#endif
