// How preloaded libraries use the target's environment. They read the supervisor's variables and
// remove them again, so that programs started by the target run as without Quern.
//
// Target context, before the program's first line: the functions neither allocate nor lock.
#ifndef QUERN_WIRE_PRELOADED_H
#define QUERN_WIRE_PRELOADED_H

#include <string.h>
#include <unistd.h>

#define PRELOADED_LIST "LD_PRELOAD="

// The entry that begins with "NAME="; NULL: none.
static inline char **preloaded_variable(const char *name) {
    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, name, strlen(name)) == 0)
            return entry;
    return NULL;
}

static inline void preloaded_remove(char **entry) {
    for (; entry && *entry; entry++)
        entry[0] = entry[1];
}

// Removes the first word of LD_PRELOAD, which names the library.
static inline void preloaded_restore_list(void) {
    char **entry = preloaded_variable(PRELOADED_LIST);
    if (!entry)
        return;
    char *rest = *entry + strlen(PRELOADED_LIST);
    rest += strcspn(rest, ": ");
    if (!*rest) {
        preloaded_remove(entry);
        return;
    }
    // "LD_PRELOAD=ours:theirs" becomes "LD_PRELOAD=theirs" in the same bytes.
    char *start = rest + 1 - strlen(PRELOADED_LIST);
    memmove(start, PRELOADED_LIST, strlen(PRELOADED_LIST));
    *entry = start;
}

#endif
