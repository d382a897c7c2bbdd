// quern-exporter's other tasks, which the verbs of quern start: asking a store, and pushing files.
// Each takes words "name=value" and returns an exit status.
#ifndef QUERN_FLEET_ASK_H
#define QUERN_FLEET_ASK_H

// store=URL [credentials=FILE] style=columns|tabs|json sql=TEXT
int ask_query(char *const *words);
// store=URL [credentials=FILE] [service=NAME] before=SECONDS after=SECONDS top=NUMBER
int ask_diff(char *const *words);
// push=URL [credentials=FILE] [service=NAME] [version=TEXT] keep-days=DAYS file=FILE...
int send_files(char *const *words);

// The value of a word; NULL: it is not given.
const char *ask_word(char *const *words, const char *name);
// One line on stderr; frees the problem. The exit status of a failure.
int ask_fail(const char *what, char *problem);

struct store;
struct store_kind;
// Opens the store that the word `name` leads to. NULL after a message.
struct store *ask_open(char *const *words, const char *name, const struct store_kind **kind);

#endif
