// What tools share that record the heap of a target, natively with the recorder preloaded or
// translated with the tool of tools/heap/target: the recorded processes of a run, the reading of
// what they write (source.h), the search for leaks, and `quern ctl`.
//
// A tool adds its sinks to the source of each process and writes a report at its end (struct
// recorded_tool). Its state begins with a struct recorded, and the hooks below are its hooks.
#ifndef QUERN_TOOLS_RECORDED_H
#define QUERN_TOOLS_RECORDED_H

#include "profile/stacks/stacks.h"
#include "supervisor/tool.h"
#include "tools/shared/supervisor/error_settings.h"
#include "tools/shared/supervisor/interpreted.h"
#include "tools/shared/supervisor/recorded/source.h"

struct recorded_process {
    int pid;
    struct log *log; // of the run
    struct recorded *recorded;
    struct heap_source *source;
    struct heap_names *names;
    struct stacks kept_stacks;   // see recorded_keep_stacks
    const struct stacks *stacks; // by which blocks are described; the tool sets it
    void *profile;               // the tool's

    // The latest search for leaks. What holds most of the memory of a stack, by stack; NULL: there
    // was no search.
    struct recorded_holder {
        uint64_t root;       // 0: not known
        uint32_t steps;      // of the first block
        uint64_t votes;      // while it is being looked for
        uint64_t held, lost; // bytes that something points to, and those that nothing does
    } * holders;
    size_t holder_count;
    struct recorded_stack_pointer {
        uint64_t pointer;
        int thread;
    } * stack_pointers; // of its threads, at that time
    size_t stack_pointer_count;

    // Frames of an interpreter: marks that symbols know, addresses of calls that run frames, and of
    // all others that were looked at.
    struct heap_interpreter interpreter;
    struct map_integers named, calls, others;

    int stat, statm, tasks;         // /proc/PID/stat, statm and task, open; -1: not
    uint64_t next_watch;            // when its threads are looked at again
    struct before *before;          // the search for blocks from before; NULL: there is none
    uint64_t attached, next_sample; // nanoseconds, of CLOCK_MONOTONIC
};

// What a tool makes of a recorded process.
struct recorded_tool {
    // Adds its sinks to the source, and sets `profile` and `stacks`.
    void (*start)(struct recorded_process *process);
    // The process has ended, and the sinks have had everything.
    void (*report)(struct recorded_process *process);
    void (*release)(struct recorded_process *process);
    uint64_t (*live_bytes)(const struct recorded_process *process);
    // May be missing: the sinks have had what there is by now (`now` is nanoseconds of
    // CLOCK_MONOTONIC); what else the status says; the answer to the request "snapshot".
    void (*drained)(struct recorded_process *process, uint64_t now);
    void (*add_status)(const struct recorded_process *process, struct text *answer);
    void (*snapshot)(struct recorded_process *process, struct text *answer);
};

// The search for leaks.
struct recorded_leaks {
    enum leak_check check;
    unsigned show_kinds;               // bits 1 << enum leak_kind
    unsigned heuristics;               // bits 1 << enum leak_heuristic
    struct suppressions *suppressions; // NULL: there are none
    bool generate;                     // show a suppression for each loss
    bool list;                         // show which ones were used
};

// The state of a run. The tool sets the first three.
struct recorded {
    const struct recorded_tool *tool;
    const char *out_file; // template
    struct heap_names_options names;

    char *recorder;   // path of quern-recorder.so; NULL: the engine records
    enum recorded_census { CENSUS_AUTO, CENSUS_YES, CENSUS_NO } census; // with --pid
    const char *note; // shown at the start; may be NULL
    struct recorded_leaks leaks;
    const struct tool_run *run;
    struct interpreted interpreted; // of all processes: a forked child has its parent's code
    struct recorded_process **processes;
    size_t process_count;
    bool main_seen;
    bool leaks_failed;
    int64_t next_wait;
    uint64_t last_drain;
};

// ---- settings ----------------------------------------------------------------------------------

// Fills what the tool does not. `depth` is the number of frames that the target records of a stack;
// `translated` says why the target is to run translated although it could be recorded natively;
// NULL: the program decides.
void recorded_settings(struct recorded *recorded, struct tool_setup *setup, long depth,
                       const char *translated);
// Why a program cannot be recorded natively; NULL: it can.
const char *recorded_static_reason(const struct tool_setup *setup);
// Frees what it holds, not the structure itself.
void recorded_release(struct recorded *recorded);

// ---- for tools ---------------------------------------------------------------------------------

// Keeps the stacks of a process in `kept_stacks`, for tools without a sink that does.
void recorded_keep_stacks(struct recorded_process *process);
// Opens the file that `out_file` names, for writing; with a number at the end unless that is 0. -1
// after a message; *path is to be freed.
int recorded_open_file(struct recorded_process *process, unsigned number, char **path);
// The command of the run, to be freed.
char *recorded_command(const struct recorded *recorded);
// What holds the memory of a stack, in words, to be freed; "": that is not known.
char *recorded_holder_text(struct recorded_process *process, uint32_t stack);

// ---- hooks -------------------------------------------------------------------------------------

void recorded_enter(struct tool_run *run, int wire, int config);
void recorded_started(struct tool_run *run);
void recorded_attached(struct tool_run *run);
bool recorded_message(struct tool_run *run, struct followed *process,
                      const struct wire_message *message);
void recorded_mapped(struct tool_run *run, struct followed *process,
                     const struct wire_module_map *map);
void recorded_began(struct tool_run *run, struct followed *process);
void recorded_ended(struct tool_run *run, struct followed *process);
bool recorded_request(struct tool_run *run, const char *request, struct text *answer);
int64_t recorded_timeout(struct tool_run *run);
void recorded_drain(struct tool_run *run);
void recorded_stopping(struct tool_run *run);
void recorded_finish(struct tool_run *run);
bool recorded_failed(struct tool_run *run);

// All of them, for a descriptor; and the request that they answer besides the tool's own.
#define RECORDED_HOOKS                                                                             \
    .enter = recorded_enter, .started = recorded_started, .message = recorded_message,             \
    .attached = recorded_attached,                                                                 \
    .mapped = recorded_mapped, .began = recorded_began, .ended = recorded_ended,                   \
    .request = recorded_request, .timeout = recorded_timeout, .drain = recorded_drain,             \
    .stopping = recorded_stopping, .finish = recorded_finish, .failed = recorded_failed
#define RECORDED_LEAKS_REQUEST                                                                     \
    { "leaks", NULL, "search for blocks that no pointer refers to" }

// ---- before.c ----------------------------------------------------------------------------------

// The process was there before: what it has allocated by now is looked for, if that is wanted.
void recorded_look_before(struct recorded_process *process);
// Takes what was found, if it is there by now; with `wait`, waits for it.
void recorded_take_before(struct recorded_process *process, bool wait);

// ---- interpreter.c -----------------------------------------------------------------------------

void recorded_interpreter_start(struct recorded_process *process);
void recorded_interpreter_end(struct recorded_process *process);
// Says why frames of an interpreter cannot be shown, if that is so.
void recorded_interpreter_say(struct recorded_process *process);

// ---- leaks.c -----------------------------------------------------------------------------------

// Who wants a search: somebody who asks while the process goes on, or is it about to be stopped, or
// does it wait to end? What the last two find are results for other programs.
enum recorded_search { SEARCH_ASKED, SEARCH_STOPPING, SEARCH_ENDING };
// Searches the process and shows what there is in the log. `sums` gets the summary; if false, what
// is wrong.
bool recorded_search_leaks(struct recorded_process *process, enum recorded_search why,
                           struct text *sums);
// The process is about to end and waits: it is searched, if that is wanted.
void recorded_ending(struct recorded_process *process);

#endif
