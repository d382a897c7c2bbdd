// The target process as a whole: its files, its end, and what the supervisor is told.
#ifndef QUERN_ENGINE_RUN_PROCESS_H
#define QUERN_ENGINE_RUN_PROCESS_H

#include <signal.h>
#include <stdint.h>
#include "engine/load/load.h"

// What start-up found out; constant afterwards.
extern struct process {
    char *program; // absolute path of the executable, for /proc/self/exe
    uint64_t brk_start, brk;
    uint64_t brk_limit;
    uint64_t stack_start, stack_end;
    uint64_t loader_start, loader_end; // the interpreter that the executable names
    int wire_fd, config_fd, ones_fd; // ones_fd: memory/shadow_area.c; -1: none
    bool trace_syscalls;
    bool has_vsyscall;
    const char *print_blocks; // --debug-print-blocks
} process;

// The dispatcher: runs the calling thread's task until the thread ends.
__attribute__((noreturn)) void run_task(void);

// The same until the next instruction would be the one at pc.
void run_until(uint64_t pc);
// call.c: calls a function of the target with the thread's number and at most three arguments.
// Nothing else changes but memory. 0 also when there is no room on its stack.
uint64_t call_target(uint64_t function, const uint64_t *arguments, unsigned count);

// Tells the supervisor that the process is ended by a signal, and where.
void process_fatal_signal(int number, const siginfo_t *);
// Ends the process as exit_group does.
__attribute__((noreturn)) void process_exit(int status);
// What is to be done and said before the process ends by exit.
int process_ending(int status); // the status that it ends with
// Ends the thread as exit does.
__attribute__((noreturn)) void thread_exit(int status);

// emulate.c: performs the instruction at self->pc, or raises the signal that it raises.
void emulate_instruction(void);
// The branch at self->pc leads to an address that cannot exist: raises what the processor does, the
// stack pointer being as before the branch. pushed: a call has already pushed its return address.
void emulate_wild_branch(bool pushed);
// request.c: the client request whose last instruction ends at self->pc.
void client_request(void);

#endif
