// The state of one target thread.
//
// A target thread is a host thread, and its task is a thread-local variable of the engine: FS
// always holds the engine's thread pointer, so generated code reaches every field with one `fs:`
// operand and C code with `self`.
//
// Words:
//   cache       the code cache: translated code runs there with the target's registers in place
//   in the engine   the thread runs C code on its engine stack; the target's registers are in gpr,
//               flags, pc and xstate
//   pending     something (a signal, a stop request) must be looked at before the cache is entered
//
// Invariants:
//   - gpr/flags/pc/xstate are the exact target state whenever the thread is in the engine.
//   - spill[r] is register r's value while a translation uses r as scratch (see cache/block.h).
//   - the host's signal mask is sigmask less the signals the engine needs for itself.
#ifndef QUERN_ENGINE_TASK_H
#define QUERN_ENGINE_TASK_H

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/x86.h"
#include "engine/task_fields.h"

// Bits of task.pending.
enum {
    PENDING_SIGNAL = 1, // task.queued holds a signal to deliver
    PENDING_STOP = 2,   // somebody wants all threads out of the cache
};

// A signal on its way to the target.
struct queued_signal {
    int number; // 0: none
    uint64_t trap, error, fault_address;
    siginfo_t info;
};

// What is needed to walk a thread's stack.
struct task_registers {
    uint64_t gpr[GPR_COUNT];
    uint64_t pc;
    bool exact; // else they may be those of some time before: it was in a function called from the cache
};

struct sighand;
struct unwind_thread;

struct task {
    uint64_t gpr[GPR_COUNT];
    uint64_t pc;
    uint64_t flags;
    uint64_t spill[GPR_COUNT];
    uint64_t fs_base, gs_base; // the target's own
    uint64_t jump_target;      // destination of the indirect branch under way
    uint64_t host_rsp;         // engine stack, while in the cache
    uint64_t entry;            // where in the cache to go next
    uint8_t *xstate;           // XSAVE area: x87, vector and mask registers, while in the engine
    uint32_t exit_link, exit_reason;
    uint32_t pending;
    uint32_t busy;          // looks up or runs translated code: a flush must wait for it
    void *tool;             // the tool's own state of the thread
    uint64_t syscall;       // number of the system call made from the cache
    uint64_t tool_words[8]; // of the tool's state, what generated code reaches with one operand
    bool stepping;          // single-stepping to a clean point (signal/host.c)
    bool forced;            // the next instruction's check has failed (tool/insert.h)
    uint64_t guard;         // stack pointer of the innermost call_guarded; 0: none
    uint32_t exit_version;  // of an indirect branch that is not in the table
    uint32_t raised;        // a replaced function has raised a signal
    uint64_t stack_start;   // of the stack that the thread was started on
    _Alignas(64) uint8_t tool_memory[4096]; // the tool's state, where it fits

    // The rest is for C code only.
    uint64_t wanted_set; // of the version that the next block is to have (insert_switch)
    uint16_t fs_selector, gs_selector; // what the target has loaded; 0 as a rule
    int pid, tid;                      // pid: of the process, the child's in a vfork child
    int number;                        // as reports name threads; the lowest that is free, from 1
    uint64_t stack_end;                // of the stack that begins at stack_start
    uint64_t wrapped;                  // the function whose wrapper was entered last
    bool unredirected;                 // the function at pc is called in spite of its wrapper
    bool unreplaced;                   // it is run although the tool stands in for it
    bool temporary_mask;               // the system call under way has a signal mask of its own
    bool spurious;                     // a system call was interrupted by the engine itself
    bool wild;                   // the fault is a branch to jump_target, which is not canonical
    bool trap_flag;              // the target single-steps itself; never in flags (run/dispatch.c)
    struct queued_signal queued; // an asynchronous signal under way
    struct queued_signal fault;  // a synchronous one
    struct queued_signal guarded_fault; // what the last call_guarded failed with
    uint64_t pushed_at; // while stepping: where a pushf has just ended; 0: it is another instruction
    uint64_t sigmask;                   // the target's signal mask
    uint64_t held_back;             // sent to the thread, never blocked natively, but by the target
    stack_t altstack;               // the target's
    struct sighand *sighand;        // the target's handlers, shared by the threads of a process
    struct unwind_thread *unwinder; // made when its stack is first walked
    uint64_t clear_child_tid;       // set_tid_address
    uint64_t robust_list;
    void *host_altstack;
    sigjmp_buf thread_end; // where a thread that has ended goes
    bool is_leader;        // runs on the process's first host thread
    bool is_borrowed;      // a vfork child runs on its parent's task
    struct task *next;     // in the list of all tasks
    uint32_t asked;        // another thread wants to have `told` filled in (task_with_stack)
    struct task_registers told;
};

#define self (&current_task)

// Displacement from FS of the task; generated code adds a field's offset.
extern int32_t task_displacement;

// The XSAVE features we save, and the size of the area (standard format).
extern uint64_t xstate_features;
extern uint32_t xstate_size;
extern bool xstate_has_xsaveopt;
enum { XSTATE_MOST = 8192 }; // more than any processor needs without AMX

void task_init_process(void); // once, before anything else
void task_init_thread(void);  // on each host thread, with signal_init_thread
void task_free_thread(void);
void task_register(struct task *); // list of all tasks; takes the task lock
void task_unregister(struct task *);
// For who has stopped the others.
const struct task *task_first(void);
// The number of the thread whose stack contains the address; 0: none. Its registers are those of
// one moment, but it may go on meanwhile. False in *known: it could not be asked.
int task_with_stack(uint64_t address, struct task_registers *, bool *known);
bool task_is_last(void); // nobody but the caller is left
// Around fork: the list must be whole in the child, whose only thread is the caller.
void task_lock_list(void);
void task_unlock_list(void);
void task_forked(void);

// Stops all other threads where they are not busy, and lets them go again. One thread at a time
// does this; the caller is not busy while it waits for its turn, and holds no lock.
void task_stop_others(void);
void task_resume_others(void);
// Stops them for good: the process is about to end, and this thread has something left to run.
void task_end_others(void);
// A thread becomes busy; it waits while somebody has stopped the others.
void task_become_busy(void);
void task_become_idle(void);

// How the engine interrupts a thread: SIGTRAP, which it handles anyway, with a code of its own.
#define ENGINE_SIGNAL      SIGTRAP
#define ENGINE_SIGNAL_CODE (-0x5157)

#endif
