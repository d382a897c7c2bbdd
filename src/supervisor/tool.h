// The contract between the supervisor and the supervisor half of a tool: the hooks that a tool has,
// and, here and in the headers of supervisor/tool/, which this one opens, what the supervisor
// offers. A supervisor half includes this header, its own folder, tools/shared, base, wire and
// profile, and nothing else of Quern (tests/layers).
//
// Words
//   tool      what a target is run for. It is a folder src/tools/NAME with up to two halves: the
//             *target half* (folder `target`, on engine/tool.h) runs in the target's process, the
//             *supervisor half* (folder `supervisor`, on this header) in the quern process. One
//             line in src/tools/meson.build registers it.
//   run       one call of quern: one tool, one main process, and those that it starts.
//   setup     the time before a run: options are known, nothing has been started.
//   state     what the tool knows of a run. The settings hook makes it, every other hook finds it
//             in run->state, the release hook frees it. A tool has no mutable variables besides.
//   process   a process of the target that the supervisor has heard of (struct followed). The tool
//             keeps what it knows of one in process->own.
//   message   what a process sends over the wire (wire/wire.h). The supervisor handles those that
//             concern every tool; the tool gets the rest.
//   file      a memory file that the target half fills and hands over with tool_give_file(); it
//             arrives as a WIRE_FILE message. The receiver owns the descriptor. A header that
//             describes its layout to both halves stands directly in the folder of the tool.
//
// What a tool consists of
//   A constant `struct supervisor_tool supervisor_NAME` ('-' in the name becomes '_'). All of it
//   but name and help may be missing: a tool without hooks runs the target translated and reports
//   its end. tools/none/supervisor.c is the smallest one, tools/dhat/supervisor one that reads a
//   file.
//
// The order of calls
//   settings                 options -> state; may refuse the run
//   choose                   before the target is forked; may refuse
//   enter                    in the forked child, of a native run
//   open                     the child exists and waits; may refuse
//   started                  the banner is out, the program runs
//   then, as things happen:
//     attached                                      the main process was there before
//     began mapped unmapped forked message ended    about one process
//     timeout drain stopping request                about all
//   finish                   nobody is left who could say more; `ended` of the rest follows
//   failed                   does the run exit with --error-exitcode?
//   release                  the state goes
//
// All hooks run in the supervisor's only thread. None may wait for the target. What comes from a
// process (messages, files) may hold anything: check it before use.
#ifndef QUERN_SUPERVISOR_TOOL_H
#define QUERN_SUPERVISOR_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/option.h"
#include "base/text.h"
#include "supervisor/followed.h"
#include "supervisor/supervisor.h"
#include "supervisor/tool/names.h"
#include "wire/wire_supervisor.h"

// ---- the setup ---------------------------------------------------------------------------------

struct tool_setup {
    // Given.
    const struct option_values *values;
    const char *program; // the file to run
    bool is_static;      // it has no loader: nothing can be preloaded into it
    int verbosity;       // 0; -1 with -q; +1 for each -v
    // The path of a file that comes with Quern, to be freed; NULL: it is missing. `mode` is R_OK or
    // X_OK.
    char *(*find_part)(const char *name, int mode);
    const struct stack_text_options *stacks; // how stacks are shown

    // For the tool to change.
    struct symbols_options *symbols; // how addresses are named
    struct xml_settings *xml;        // for tools that write XML
    bool is_native;                  // true: the target is not translated, the engine not needed
    struct text remarks;             // lines for stderr, unless -q

    // Set by the functions below.
    char *problem;  // why there can be no run; NULL: there can
    char **options; // "name=value" for the target half
    size_t option_count;
};

// The run cannot take place, for this reason, which quern prints. The first call counts.
void tool_refuse(struct tool_setup *setup, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// The same with an allocated reason, which it frees. NULL: no effect.
void tool_refuse_for(struct tool_setup *setup, char *reason);
// Sends "name=value" to the target half. It goes before the values of the command line, and the
// first value of a name is the one that holds.
void tool_send_option(struct tool_setup *setup, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// ---- the run -----------------------------------------------------------------------------------

struct tool_run {
    const struct supervisor_request *request; // command, stacks, limits and so on
    struct symbols *symbols;                  // names addresses of processes
    struct log *log;                          // lines for the user
    const struct followed_table *processes;   // those that the supervisor has heard of
    int main_pid;
    void *state; // the tool's
};

// What `quern ctl` can ask for. A request is its first word. Tools that share a word mean the same
// by it and explain it with the same text.
struct tool_request {
    const char *word;
    const char *usage; // how help shows it; NULL: as `word`
    const char *help;  // NULL: it is explained with the one before
};

struct supervisor_tool {
    const char *name;
    const char *plain_name; // which may be given as well; NULL: it has none
    const char *help;       // one line: what it is for
    bool is_planned;        // known by name only
    // Its errors are the purpose: it takes all options about errors and ends the log with a
    // summary.
    bool finds_errors;
    bool is_exported; // it writes recordings that a fleet's exporter follows (supervisor/tool/fleet.h)
    const char *takes;            // options of TOPIC_ERRORS that have an effect besides: "a|b"
    const struct option *options; // the last entry has no name; NULL: none
    const struct tool_request *requests; // the last entry has no word; NULL: none

    // Makes the state from the values of options. May call tool_refuse; the state is released then.
    void *(*settings)(struct tool_setup *setup);
    void (*release)(void *state);
    // The target has changed this option (the setup as before, with the new value): brings the
    // state in line. Without this hook no option can be changed. NULL, or a reason against it to be
    // freed.
    char *(*changed)(void *state, struct tool_setup *setup, const struct option *option);
    // Whether a run with this state will know a number that has a limit. Without this hook: all.
    bool (*knows)(const void *state, enum budget_kind kind);

    // Before the target is forked. False after a message: there is no run.
    bool (*choose)(struct tool_run *run);
    // In the forked child, just before it executes the program natively. Descriptors of the wire
    // and the configuration close then, unless launch_keep() is called for them.
    void (*enter)(struct tool_run *run, int wire, int config);
    // The child waits. False after a message: there is no run.
    bool (*open)(struct tool_run *run);
    void (*started)(struct tool_run *run);
    // The main process was there before (--pid), and is recorded from now on.
    void (*attached)(struct tool_run *run);

    // A message that is not for all tools. Takes message->fd, if it takes the message. False: it is
    // not this tool's.
    bool (*message)(struct tool_run *run, struct followed *process,
                    const struct wire_message *message);
    void (*mapped)(struct tool_run *run, struct followed *process,
                   const struct wire_module_map *map);
    void (*unmapped)(struct tool_run *run, struct followed *process);
    // The process runs another program now. Its old mappings are still known to the symbols.
    void (*began)(struct tool_run *run, struct followed *process);
    // `parent` is NULL if the supervisor has not heard of it.
    void (*forked)(struct tool_run *run, const struct followed *parent, struct followed *child);
    // The process has ended, and everything that it sent has been taken. Its mappings are still
    // known. The main process ends once, and after all others that ended before it.
    void (*ended)(struct tool_run *run, struct followed *process);

    // Answers `quern ctl` ("ok", then what there is to say; else why not). False: not understood.
    bool (*request)(struct tool_run *run, const char *request, struct text *answer);
    // The same for one process, which stands still: commands of gdb's user (supervisor/monitor.h).
    // The answer is text; it ends with a line feed unless it is empty.
    bool (*monitor)(struct tool_run *run, const struct followed *process, const char *command,
                    struct text *answer);
    // Nanoseconds until `drain` is due; -1: never.
    int64_t (*timeout)(struct tool_run *run);
    // Takes what is waiting elsewhere than on the wire. Called at least once per round.
    void (*drain)(struct tool_run *run);
    // The main process is about to be stopped by a signal (--duration, quern ctl).
    void (*stopping)(struct tool_run *run);
    void (*finish)(struct tool_run *run);

    // Whether errors were found that count for --error-exitcode.
    bool (*failed)(struct tool_run *run);
    // The number that reports give a thread. Without this hook: 1.
    int (*thread_number)(struct tool_run *run, int pid, int tid);
};

// The tools, in the order of help: src/tools/registry.c.
extern const struct supervisor_tool *const tool_table[];
extern const size_t tool_count;
// The tool of this name, or NULL.
const struct supervisor_tool *tool_find(const char *name);

// Values for `takes`: tools whose findings become results for other programs, and tools that search
// for leaks natively.
#define TOOL_TAKES_RESULTS "error-exitcode|sarif-file|junit-file|json-file|github|baseline"
#define TOOL_TAKES_SUPPRESSIONS                                                                    \
    "show-error-list|s|suppressions|default-suppressions|gen-suppressions"

// ---- what the supervisor offers ----------------------------------------------------------------

#include "supervisor/launch.h"        // preloading a library
#include "supervisor/log.h"           // lines for the user
#include "supervisor/present.h"       // the command, and where a profile is
#include "supervisor/tool/before.h"   // blocks of a process from before (--pid)
#include "supervisor/tool/files.h"    // writers of profiles
#include "supervisor/tool/findings.h" // errors, limits, diagnoses
#include "supervisor/tool/fleet.h"    // exporting recordings while they grow
#include "supervisor/tool/memory.h"   // the memory of a target that runs natively
#include "supervisor/tool/walk.h"     // walking its stacks

// A pattern such as callgrind.out.%p becomes a name by base/template.h.

#endif
