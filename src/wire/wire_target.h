// The target's side of the wire: sending messages, reading options.
//
// It runs inside the target's process. Rules: raw system calls only, no allocation, no stdio, no
// locks, no errno. Every function may be called from any thread and any signal handler. Sending
// never raises a signal and never waits for ever. If the supervisor is dead, messages are dropped
// at once. If it does not read for a minute, messages are dropped until it reads again.
#ifndef QUERN_WIRE_WIRE_TARGET_H
#define QUERN_WIRE_WIRE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire.h"

// Names the socket; call it again after moving the descriptor. Nothing is sent before.
void wire_init(int fd);
// The descriptor in use, -1 before wire_init.
int wire_fd(void);

void wire_send(enum wire_type type, const void *payload, size_t size);

// At the start of every program (also after a followed exec, not after a fork). `argv` is shown in
// the banner; what does not fit in a few kilobytes is left out. With NULL: the process is still
// there after an exec that failed.
void wire_send_hello(int pid, int ppid, const char *path, char *const *argv);
// By the child, before anything else: the supervisor believes only what a process says of itself.
void wire_send_forked(int parent, int child);
void wire_send_exec_away(enum wire_away reason, const char *path);
void wire_send_ending(void);
void wire_send_exiting(int status);
// The process has waited for another.
void wire_send_reaped(int pid);
// At most as many pcs as fit in a message are sent (about 8,000).
void wire_send_fatal_signal(int signal, int code, uint64_t address, int tid, const uint64_t *pcs,
                            size_t count);
void wire_send_module_map(uint64_t start, uint64_t end, uint64_t offset, unsigned prot,
                          const char *path);
void wire_send_module_unmap(uint64_t start, uint64_t end);
// Longer text is cut at the size of a message.
void wire_send_notice(int level, const char *text);
// Counts are to be written (level 0) or set to nought (1), and why.
void wire_send_dump(int level, const char *text);
void wire_send_debug(const char *text);
void wire_send_monitor(int level, const char *text);
// At most 500 pcs; the text is cut at the size of a message.
void wire_send_print(int thread, const char name[WIRE_THREAD_NAME], const char *text,
                     const uint64_t *pcs, size_t count);
// Hands the area of wire_heap.h over.
void wire_send_heap(int fd, uint64_t size);
// A descriptor for the supervisor to keep, with a message that has no payload.
void wire_send_file(enum wire_type type, int fd);
// A message in two parts.
void wire_send_parts(enum wire_type type, const void *first, size_t first_size, const void *second,
                     size_t second_size);

// ---- waiting for the log ----
//
// A message is *settled* when what the supervisor writes for it has been written. Before the target
// does something that a reader of the log can see, its messages are settled, so that the log is in
// order with that.

// Messages of this process for which something may be written: sent, and those settled.
extern uint32_t wire_raised, wire_settled;

static inline bool wire_is_settled(void) {
    return __atomic_load_n(&wire_raised, __ATOMIC_RELAXED) ==
           __atomic_load_n(&wire_settled, __ATOMIC_RELAXED);
}
// Waits until all messages sent so far are settled; false: a signal has arrived before. It waits
// for at most a minute. If the supervisor cannot write (the log may be a pipe that is full, and its
// reader may wait for the target), it waits for two seconds, and not again before it can.
bool wire_settle(void);
// NULL before wire_config_load.
const struct wire_board *wire_board(void);

// Maps the configuration; the descriptor may be closed afterwards. 0, or a negative error number
// (-EPROTO: made by another version).
int wire_config_load(int fd);
// The option's value, NULL when absent. The string lives as long as the process.
const char *wire_option(const char *name);
// The next value of a repeated option after `previous` (NULL: the first).
const char *wire_option_next(const char *name, const char *previous);
bool wire_option_yes(const char *name);
// Decimal, or hexadecimal with 0x.
long wire_option_number(const char *name, long otherwise);

#endif
