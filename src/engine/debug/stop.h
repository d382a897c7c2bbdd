// Between the parts of debug/: the stop that is under way. For the server alone.
#ifndef QUERN_ENGINE_DEBUG_STOP_H
#define QUERN_ENGINE_DEBUG_STOP_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/debug/debug.h"

struct task;

// How the target goes on.
struct debug_resume {
    struct task *only; // this thread alone; NULL: all
    bool detaches;
};

// packets.c: answers gdb until the target is to go on.
void packets_serve(enum debug_event, int signal, struct debug_resume *);
// Reports the end of the process: 'W' and a status, or 'X' and a signal.
void packets_report_end(char how, int value);
// A new connection begins.
void packets_begin(void);

// resume.c: whether gdb wants to hear of this signal.
bool resume_wants_signal(int number);

// monitor.c: performs a command of gdb's user, and answers.
void monitor_command(const char *command);

// stop.c
bool debug_insert(uint64_t pc);
bool debug_remove(uint64_t pc);
// All translations are dropped before the target goes on.
void debug_flush_later(void);
// Translations of [start, end) are no longer right.
void debug_drop_code(uint64_t start, uint64_t end);
extern uint64_t debug_error_limit; // --vgdb-error

#endif
