// Options, lines for the user, and what a tool sends to its half in the supervisor.
//
// From hooks and inserted calls that may use the C library, in any thread. The supervisor takes the
// messages of a process in their order.
#ifndef QUERN_ENGINE_TOOL_MESSAGES_H
#define QUERN_ENGINE_TOOL_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// An option's value, or NULL.
const char *tool_option(const char *name);
// Its next value after one of them; NULL: the first, or none.
const char *tool_option_next(const char *name, const char *previous);
// A line for the user, after ==PID==.
__attribute__((format(printf, 1, 2))) void tool_say(const char *format, ...);
// The same after --PID--, for options that trace.
__attribute__((format(printf, 1, 2))) void tool_debug(const char *format, ...);
// The same, with -q too; then the process ends with status 1.
__attribute__((noreturn, format(printf, 1, 2))) void tool_give_up(const char *format, ...);
// A line that the program itself asked to print, after **PID**; with the call stack if asked for.
void tool_print(const char *text, bool with_stack);

// The tool has shown its nth error to the user. Waits for gdb here, if --vgdb-error says so.
void tool_error_shown(uint64_t shown);
// Whether that may be: the tool then waits until the supervisor has shown an error.
bool tool_waits_at_errors(void);
// In the `monitor` hook: text for the user who gave the command, as it is.
__attribute__((format(printf, 1, 2))) void tool_answer(const char *format, ...);

// Hands a memory file over to the supervisor half of the tool (WIRE_FILE), which mostly reads it
// when the process has ended. Its layout is the tool's own; seal it against shrinking. Once per
// process: a later file replaces the one before.
void tool_give_file(int fd);
// Asks for a report of that file while the process runs; report = false: asks to set it to zero.
// The supervisor answers in the file.
void tool_ask_report(bool report, const char *why);
// Hands over the area of wire_heap.h.
void tool_give_heap(int fd, uint64_t size);
// For tools that find errors (wire/findings.h): the ledger, and messages in two parts.
void tool_give_ledger(int fd);
void tool_send(unsigned type, const void *first, size_t first_size, const void *second,
               size_t second_size);

#endif
