// The supervisor: launches the target, collects what its processes say, writes the log, and ends
// as the target ended.
//
// Words: the *main process* is the one launched; *followed* processes are its descendants that run
// translated. The *collector* is what is left of the supervisor in the background when the main
// process has ended and followed ones live on.
//
// Only src/cli calls in here, once per run. The supervisor is single-threaded; all signals are
// blocked while it runs and are read as events.
#ifndef QUERN_SUPERVISOR_SUPERVISOR_H
#define QUERN_SUPERVISOR_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/results/budgets.h"
#include "report/shared/stack_text.h"
#include "symbols/symbols.h"

enum log_kind { LOG_TO_FD, LOG_TO_FILE, LOG_TO_SOCKET };

struct log_settings {
    enum log_kind kind;
    int fd;
    const char *place; // file template, or address:port
    int verbosity;     // 0; -1 with -q; +1 for each -v
    bool time_stamp;
};

// Limits of a run (supervisor/budgets.h).
struct budget_settings {
    struct budget limits[BUDGETS];
    int status;       // to exit with when one is exceeded
    int error_status; // --error-exitcode; 0: not given
};

// Whether findings of the diagnosis are said: as the tool does by itself, always, never; and
// whether they fail a run.
enum diagnose_mode { DIAGNOSE_AUTO, DIAGNOSE_YES, DIAGNOSE_NO, DIAGNOSE_ERROR };

struct xml_settings {
    bool wanted;
    enum log_kind kind;
    int fd;
    const char *place;   // file template, or address:port
    const char *comment; // copied as it is; NULL: none
    unsigned protocol;   // 4, or 6: with summaries
};

// What gdb may do (debugger.h).
struct debugger_settings {
    bool is_enabled;    // --vgdb
    const char *prefix; // --vgdb-prefix; NULL: none
};

// Waiting for a server, and a load for it (scenario.h).
struct scenario_settings {
    int port;         // 0: not waited for
    int udp_port;     // 0: not waited for
    const char *path; // of a file or socket; NULL: not waited for
    const char *url;  // NULL: not waited for
    const char *log;  // a regular expression; NULL: not waited for
    bool is_terminal; // the standard output goes to a terminal, not to a pipe
    long timeout;     // seconds to wait
    const char *load; // a command for the shell; NULL: none
};

// Whether there is anything to wait for.
bool supervisor_waits(const struct scenario_settings *settings);

// Files for other programs (report/results/results.h); NULL: not wanted.
struct output_settings {
    const char *sarif, *junit, *json;
    bool github;               // commands of a workflow, on stderr
    struct baseline *baseline; // what is known already; NULL: nothing
};

// An option that the target wants to be changed while it runs, for this process and all others:
// what there is to say about it, to be freed.
struct option_changer {
    char *(*change)(void *context, const char *word);
    void *context;
};

struct fleet; // fleet/fleet.h
struct supervisor_tool;
struct job; // supervisor/job.h

struct supervisor_request {
    struct job *job; // the supervisor's own state of the run; supervisor_run makes it
    const struct supervisor_tool *tool; // supervisor/tool.h
    void *tool_state;
    const char *program;        // the file to run
    char *const *argv;          // the target's, argv[0] as the user typed it
    int attach_pid;             // the process to attach to; 0: the program is started
    const char *attach_library; // what is loaded into it
    const char *engine;         // path of quern-engine; NULL: the target runs natively
    const char *const *options; // "name=value" for the engine, in order
    size_t option_count;
    struct log_settings log;
    struct symbols_options symbols;
    struct stack_text_options stacks;
    struct xml_settings xml;
    struct output_settings outputs;
    struct budget_settings budgets;
    enum diagnose_mode diagnose;
    struct scenario_settings scenario;
    struct debugger_settings debugger;
    struct fleet *fleet; // where the run is exported; NULL: nowhere
    struct option_changer changer;
    const char *const *own_words; // the command line before the program; NULL at the end
    long duration;                // seconds after which the target is stopped; 0: never
    long progress;                // seconds between lines that say how far it is; 0: none
    bool silent_after_fork;       // mute a forked child until it execs
    const char *const *remarks;   // lines for -v: where options came from, what has no effect
    size_t remark_count;
};

// Runs the target to its end. The exit status for the supervisor; does not return when the target
// ended by a signal (the supervisor ends by the same one).
int supervisor_run(struct supervisor_request *request);

#endif
