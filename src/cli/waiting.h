// What a verb that takes long is doing, on the terminal: one line that comes after two seconds and
// goes when there is something to print. Nothing where standard error is not a terminal.
#ifndef QUERN_CLI_WAITING_H
#define QUERN_CLI_WAITING_H

// From now on, for this thread. Call it once, before the verb.
void waiting_show(void);

#endif
