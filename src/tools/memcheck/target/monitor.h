// Commands of a user while the target stands still (tool.monitor): Valgrind's monitor commands of
// memcheck. A target gives them, too, by VALGRIND_MONITOR_COMMAND.
#ifndef QUERN_MEMCHECK_MONITOR_H
#define QUERN_MEMCHECK_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

extern const char monitor_help[];

// Words with single spaces. False: not a command of memcheck's.
bool monitor_perform(char *command);

// Parts of a command: the next word, NULL: there is none; an address and a length (1 if it is not
// given). False after an answer that says what is wrong.
char *monitor_word(char **rest);
bool monitor_range(char *rest, uint64_t *address, uint64_t *length);

// leaks/commands.c
void monitor_leak_check(char *rest);
void monitor_block_list(char *rest);
void monitor_who_points_at(char *rest);

#endif
