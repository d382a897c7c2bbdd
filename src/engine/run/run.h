// Running the target: the dispatcher, which finds or makes the block for an address and enters it,
// and the instructions that the engine performs itself. Each thread of the target runs it.
#ifndef QUERN_ENGINE_RUN_RUN_H
#define QUERN_ENGINE_RUN_RUN_H

#include <stdbool.h>
#include <stdint.h>

// The dispatcher: runs the calling thread's task until the thread ends.
__attribute__((noreturn)) void run_task(void);

// The same until the next instruction would be the one at pc.
void run_until(uint64_t pc);
// call.c: calls a function of the target with the thread's number and at most three arguments.
// Nothing else changes but memory. 0 also when there is no room on its stack.
uint64_t call_target(uint64_t function, const uint64_t *arguments, unsigned count);

// emulate.c: performs the instruction at self->pc, or raises the signal that it raises.
void emulate_instruction(void);
// The branch at self->pc leads to an address that cannot exist: raises what the processor does, the
// stack pointer being as before the branch. pushed: a call has already pushed its return address.
void emulate_wild_branch(bool pushed);
// There is no code at this address, for the reason that si_code will have.
void raise_fetch_fault(uint64_t address, int code);
// request.c: the client request whose last instruction ends at self->pc.
void client_request(void);

#endif
