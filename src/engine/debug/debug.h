// Serving gdb: where the target stops for it, and how it goes on.
//
// gdb runs `quern vgdb`, which connects to the supervisor. That asks the process with a signal, or
// the process waits for gdb by itself (--vgdb-error, --vgdb-stop-at). The process then makes a
// socket (channel.h), gives its other end to the supervisor, and speaks gdb's remote protocol over
// it. The supervisor passes bytes on and reads nothing but interrupts.
//
// Words
//   stop      all threads stand still and one of them, the *server*, answers gdb
//   event     why the server has stopped
//   attached  gdb is connected. Until then nothing here costs anything
//   alone     of a thread: it goes on and the others do not (task.h)
//
// At a stop every thread's state is in its task: threads are between two instructions or in a
// system call. One kind of stop is different. At an error the server is in a function that
// translated code has called, with general registers in the task and vector registers in
// task.vectors. When it goes on, it leaves that function and the block first, alone; then the
// others follow. So new breakpoints count for the rest of the block, too.
#ifndef QUERN_ENGINE_DEBUG_DEBUG_H
#define QUERN_ENGINE_DEBUG_DEBUG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum debug_event {
    DEBUG_NOTHING,
    DEBUG_ASKED,     // by the supervisor, because gdb wants to connect
    DEBUG_INTERRUPT, // Ctrl+C in gdb
    DEBUG_BREAKPOINT,
    DEBUG_STEPPED,
    DEBUG_SIGNAL, // the target is about to get one
    DEBUG_ERROR,  // the tool has shown an error
    DEBUG_START,
    DEBUG_EXIT,
    DEBUG_WATCHED, // watched memory has been used
};

extern bool debug_attached;

void debug_init(void);   // reads options
void debug_forked(void); // in the child, which gdb does not follow
// Before an exec: from now on the supervisor sends no signal on gdb's behalf. Until the next hello.
void debug_before_exec(void);

// In a thread that ends, and has blocked all signals: another one answers gdb.
void debug_thread_ends(void);

// From the dispatcher, between two instructions:
void debug_start(void);      // before the first one
void debug_pending(void);    // PENDING_DEBUG is set
void debug_breakpoint(void); // one is at pc
void debug_stepped(void);    // the instruction that was run alone is over
void debug_signal(void);     // one is about to be delivered: may take it away or change it

// Whether debug_error may ever stop.
bool debug_waits_at_errors(void);
// Text for gdb's user, while the tool performs a command (tool.monitor).
void debug_answer(const char *format, va_list);
// The tool has shown its nth error. From any place where a tool may be.
void debug_error(uint64_t shown);

// The process is about to end, by an exit or by a signal; before the tool's last report.
void debug_ending(bool is_abnormal);
// It has said everything: gdb hears of the end.
void debug_ended_by_exit(int status);
void debug_ended_by_signal(int number);

#endif
