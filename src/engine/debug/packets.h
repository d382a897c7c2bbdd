// What the files share that answer gdb's packets: packets.c holds the conversation and hands each
// packet to threads.c, state.c or resume.c. Only they include this header. All of it runs in the
// server, while the other threads stand still (debug.h).
//
// A function that takes the text of a packet answers it, unless it says otherwise.
#ifndef QUERN_ENGINE_DEBUG_PACKETS_H
#define QUERN_ENGINE_DEBUG_PACKETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/remote.h"

struct debug_resume;
struct task;

// ---- packets.c ----

// Where the answer to the packet at hand is made.
extern char packets_answer[REMOTE_MOST + 1];
// Answers OK, or an error.
void packets_reply_done(bool done);
// Reads "address,size"; answers nothing.
bool packets_read_range(const char **text, uint64_t *address, uint64_t *size);

// ---- threads.c ----

void threads_begin(void);         // a new connection
void threads_choose_server(void); // a new stop
struct task *threads_find(int tid);
// The thread that registers and memory are about.
struct task *threads_chosen(void);
// The thread that `c` and `s` are about; NULL: all.
struct task *threads_continued(void);
// Reads a thread's id; 0: any, -1: all. Answers nothing.
bool threads_read_id(const char **text, int *tid);
void threads_choose(const char *text);
void threads_check(const char *text); // is it alive?
void threads_list(void);
void threads_describe(const char *text);

// ---- state.c ----

void state_read_registers(void);
void state_read_register(const char *text);
void state_write_registers(const char *text);
void state_write_register(const char *text);
void state_read_memory(const char *text);
void state_write_memory(const char *text, const char *end, bool is_binary);
void state_change_breakpoint(const char *packet);

// ---- resume.c ----

void resume_begin(void); // a new connection
int resume_signal_to_gdb(int number);
void resume_pass_signals(const char *list);
// Read what the threads do next; they answer nothing. False: it makes no sense.
bool resume_read_actions(const char *text, struct debug_resume *);
void resume_read_plain_action(const char *text, struct debug_resume *);

#endif
