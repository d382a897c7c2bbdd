// Which thread of a stopped process can be borrowed (load.h), and the registers with which it goes
// on later. Supervisor context.
#ifndef QUERN_ATTACH_BORROW_H
#define QUERN_ATTACH_BORROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "attach/freeze.h"

#define BORROW_OBJECTS   4096
#define BORROW_RESTORERS 8

// What is known of executable memory before the process is stopped.
struct borrow_object {
    uint64_t start, end;
    bool is_libc;   // its calls of the kernel may be malloc's
    bool is_loader; // the dynamic linker
    bool is_unsafe; // no thread is borrowed while it runs in here
};

struct borrow_map {
    struct borrow_object *objects; // by address
    size_t count;
    // Where signal handlers return to, in libc.
    uint64_t restorers[BORROW_RESTORERS];
    size_t restorer_count;
};

struct borrowed {
    int tid;
    struct user_regs_struct registers; // with which it goes on
    uint64_t signals;                  // that it blocks
};

// False: no thread is safe at this moment.
bool borrow_choose(const struct borrow_map *map, int pid, const struct freeze *freeze,
                   struct borrowed *borrowed);

#endif
