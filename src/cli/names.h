// The names of other programs that Quern answers to: links with these names do what those programs
// do (`quern names DIRECTORY` makes them).
#ifndef QUERN_CLI_NAMES_H
#define QUERN_CLI_NAMES_H

#include <stdbool.h>

struct verb;

enum names_call {
    NAMES_OWN,   // a command line of Quern's, perhaps with new words
    NAMES_VERB,  // the words behind the name are for *verb
    NAMES_ENDED, // everything is printed: end with *status
};

// What the name that the program was called by asks for.
enum names_call names_translate(char ***argv, const struct verb **verb, int *status);
// Whether the program was called as Valgrind, and claims to be of a version of it.
bool names_claim_valgrind(void);
#define NAMES_VALGRIND_VERSION "3.28.0"

#endif
