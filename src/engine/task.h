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
    PENDING_DEBUG = 4,  // gdb wants something (debug/debug.h)
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
    bool exact; // else they may be those of some time before: it was in a function called from the
                // cache
};

// What gdb wants of a thread; debug/stop.c writes it while the thread is stopped.
struct task_debug {
    uint8_t step;      // enum task_step: the next instruction is run alone
    bool is_leaving;   // leaves a function that translated code has called, then goes on
    uint8_t postponed; // enum debug_event: to be reported at the next instruction; 0: nothing
    unsigned watch;    // number of the watch that was hit, from 1; 0: none
    int signal;        // to be delivered in place of the one that was reported; 0: none
    uint64_t step_start, step_end; // steps are not reported within
};
// Where a thread is. From a function that was called from the cache it goes back there, so nothing
// may be flushed meanwhile.
enum task_where {
    IN_ENGINE,
    IN_CODE, // translated code, or a function that it has called
    IN_CALL, // a function that the dispatcher calls for it: all registers are in the task
};
enum task_step { STEP_NONE, STEP_REPORT, STEP_SILENTLY };

struct limits;
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
    uint64_t stack_end;
    _Alignas(64) uint8_t tool_memory[4096]; // the tool's state, where it fits

    // The rest is for C code only.
    uint64_t wanted_set; // of the version that the next block is to have (insert_switch)
    uint16_t fs_selector, gs_selector; // what the target has loaded; 0 as a rule
    int pid, tid;                      // pid: of the process, the child's in a vfork child
    int number;                        // as reports name threads; the lowest that is free, from 1
    uint64_t wrapped;                  // the function whose wrapper was entered last
    bool unredirected;                 // the function at pc is called in spite of its wrapper
    bool unreplaced;                   // it is run although the tool stands in for it
    bool temporary_mask;               // the system call under way has a signal mask of its own
    bool spurious;                     // a system call was interrupted by the engine itself
    bool wild;                   // the fault is a branch to jump_target, which is not canonical
    bool trap_flag;              // the target single-steps itself; never in flags (run/dispatch.c)
    struct queued_signal queued; // an asynchronous signal under way
    struct queued_signal fault;  // a synchronous one
    struct queued_signal guarded_fault; // what the last copy or call failed with
    uint64_t
        pushed_at; // while stepping: where a pushf has just ended; 0: it is another instruction
    uint64_t stepping_at;           // while stepping: the instruction
    int prodding_timer;             // interrupts the thread until a step has been made
    bool is_prodded;                // that timer exists
    unsigned stuck;                 // how often it has been interrupted without a step
    uint64_t sigmask;               // the target's signal mask
    uint64_t held_back;             // sent to the thread, never blocked natively, but by the target
    stack_t altstack;               // the target's
    struct sighand *sighand;        // the target's handlers, shared by the threads of a process
    struct limits *limits;          // likewise shared
    struct unwind_thread *unwinder; // made when its stack is first walked
    uint64_t clear_child_tid;       // set_tid_address
    uint64_t robust_list;
    struct { // syscall user dispatch
        bool is_on;
        uint64_t start, size; // code whose calls pass
        uint64_t selector;    // address of the byte that says whether others do; 0: they do not
    } dispatch;
    void *host_altstack;
    sigjmp_buf thread_end; // where a thread that has ended goes
    bool is_leader;        // runs on the process's first host thread
    bool is_borrowed;      // a vfork child runs on its parent's task
    struct task *next;     // in the list of all tasks
    uint32_t asked;        // another thread wants to have `told` filled in (task_with_stack)
    uint8_t where;         // enum task_where
    uint8_t *vectors;      // while in such a function that uses vector registers: the target's
    struct task_debug debug;
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
bool task_is_last(void);       // nobody but the caller is left
bool task_shares_memory(void); // with another process
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
// Stops them although the caller is busy: it is in a function that translated code has called.
// False: another thread stops all, and waits for this one.
bool task_try_stop_others(void);
// For who has stopped the others: only this thread goes on, the caller or one of them. For that
// one, the others count as stopped from then on.
void task_let_alone(struct task *);
// The thread that goes on alone, or NULL. No lock.
struct task *task_alone(void);
// The others go on, too, whoever was alone.
void task_resume_all(void);
// Interrupts a thread with ENGINE_SIGNAL. False: there is no such thread, because the process that
// shared its memory with this one has ended.
bool task_interrupt(const struct task *);
// A thread becomes busy; it waits while somebody has stopped the others.
void task_become_busy(void);
void task_become_idle(void);

// How the engine interrupts a thread: SIGTRAP, which it handles anyway, with a code of its own.
#define ENGINE_SIGNAL      SIGTRAP
#define ENGINE_SIGNAL_CODE (-0x5157)

#endif
