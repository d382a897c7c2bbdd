// The supervisor's side of the wire: reading messages, writing the configuration.
//
// What arrives was written by the target's process, which may be broken or hostile: nothing in a
// message is trusted before wire_decode has checked it. Supervisor context only.
#ifndef QUERN_WIRE_WIRE_SUPERVISOR_H
#define QUERN_WIRE_WIRE_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/findings.h"
#include "wire/wire.h"

// A checked message. The pointers reach into the buffer that was decoded; strings are terminated,
// arrays have the stated length.
struct wire_message {
    enum wire_type type;
    int pid; // the kernel's word where known, else the sender's
    int tid;
    int fd;      // of messages that bring a file or a socket, for the receiver to close; else -1
    size_t size; // of the payload
    union {
        const void *payload;
        const struct wire_hello *hello;
        const struct wire_forked *forked;
        const struct wire_exec_away *exec_away;
        const struct wire_exiting *exiting;
        const struct wire_reaped *reaped;
        const struct wire_fatal_signal *fatal_signal;
        const struct wire_module_map *module_map;
        const struct wire_module_unmap *module_unmap;
        const struct wire_text *text;
        const struct wire_heap *heap;
        const struct wire_print *print;
        const struct wire_finding *finding;
        const struct wire_leaks *leaks;
        const struct wire_loss *losses; // as many as fill `size` bytes
        const struct wire_findings_end *findings_end;
    };
};

enum wire_result {
    WIRE_GOT,     // a message is there
    WIRE_NOTHING, // none is waiting
    WIRE_CLOSED,  // no process holds the other end any more
    WIRE_BAD,     // a packet was malformed; skip it
    WIRE_OTHER,   // a packet of another protocol version
};

// Checks a packet. WIRE_GOT, WIRE_BAD or WIRE_OTHER. `bytes` must be aligned to 8.
enum wire_result wire_decode(const void *bytes, size_t size, struct wire_message *message);

// The finding of a checked message. It points into the message.
struct finding wire_finding_parts(const struct wire_finding *message);

// Makes the socket pair: [0] for the supervisor (non-blocking, told each sender's true pid), [1]
// for the target. Both close-on-exec, at high numbers. 0, or the error number.
int wire_open(int ends[2]);

// Takes the next packet into `buffer` (WIRE_MESSAGE_MAX bytes, aligned to 8) and checks it.
enum wire_result wire_receive(int fd, void *buffer, struct wire_message *message);

// Makes the sealed configuration file. The descriptor (close-on-exec, high), or -1 with errno.
int wire_config_write(const char *const *options, size_t count);

// The board of the configuration that was written last. A target that waits until its reports are
// in the log reads there how far the supervisor is.
//
// Before messages are received; after each has been taken; when no more wait, or for a change.
void wire_board_working(void);
void wire_board_took(void);
void wire_board_end_turn(bool is_idle);
// Writes to the log or the XML: 0, or the error number.
int wire_board_write(int fd, const char *bytes, size_t size);
// Where the log and the XML go to (-1: nowhere).
void wire_board_set_places(int log, int xml);

#endif
