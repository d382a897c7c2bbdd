// Which system calls open, use and close descriptors, and what a descriptor leads to. For
// track_descriptors.c: a table of calls, and Valgrind's texts for files, sockets and pipes. It
// keeps no state.
#ifndef QUERN_ENGINE_REPORT_DESCRIPTOR_CALLS_H
#define QUERN_ENGINE_REPORT_DESCRIPTOR_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum descriptor_opens {
    OPENS_NOTHING,
    OPENS_RESULT,   // the result is a new descriptor
    OPENS_PAIR,     // two are stored where `argument` points to
    OPENS_RECEIVED, // a message may bring some (recvmsg)
};

struct descriptor_call {
    enum descriptor_opens opens;
    unsigned argument; // OPENS_PAIR
    bool may_move;     // OPENS_RESULT: the target has not chosen the number
    int uses;          // the argument that must be open; -1: none
};

// False: the call has nothing to do with descriptors.
bool descriptor_call_of(long number, const uint64_t arguments[6], struct descriptor_call *);

// "file descriptor 3: /etc/passwd", "AF_INET socket 4: 127.0.0.1:80 <-> <unbound>", as Valgrind has
// it. False: it is not open.
bool descriptor_describe(int fd, char *to, size_t size);
// All that are open, but for the engine's own.
void descriptors_each_open(void (*visit)(int fd));

#endif
