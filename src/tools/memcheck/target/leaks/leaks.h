// Looking for blocks that nobody points to.
#ifndef QUERN_MEMCHECK_LEAKS_H
#define QUERN_MEMCHECK_LEAKS_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/findings/leaks.h"

enum leak_mode { LEAKS_SUMMARY, LEAKS_FULL };
enum leak_delta { LEAKS_ALL, LEAKS_INCREASED, LEAKS_CHANGED, LEAKS_NEW };

void leaks_start(void);                                        // reads options
void leaks_change_option(const char *name, const char *value); // while the program runs
void leaks_check_at_end(void);                                 // what --leak-check asks for
void leaks_check(enum leak_mode, enum leak_delta);             // a client request

struct leak_totals {
    uint64_t bytes[LEAK_KINDS + 1], blocks[LEAK_KINDS + 1]; // the last is for suppressed ones
};
struct leak_totals leaks_last(void); // VALGRIND_COUNT_LEAKS

#endif
