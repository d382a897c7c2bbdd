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

#include "profile/heap/massif.h"
#include "report/results/budgets.h"
#include "report/heap/names.h"
#include "report/shared/stack_text.h"
#include "report/findings/suppressions.h"
#include "symbols/symbols.h"

enum log_kind { LOG_TO_FD, LOG_TO_FILE, LOG_TO_SOCKET };

struct log_settings {
    enum log_kind kind;
    int fd;
    const char *place; // file template, or address:port
    int verbosity;     // 0; -1 with -q; +1 for each -v
    bool time_stamp;
};

enum heap_tool { HEAP_TOOL_NONE, HEAP_TOOL_MASSIF, HEAP_TOOL_RECORD, HEAP_TOOL_DHAT };

enum leak_check { LEAK_CHECK_NO, LEAK_CHECK_SUMMARY, LEAK_CHECK_FULL };

// A search for leaks in a target that runs natively.
struct heap_leak_settings {
    enum leak_check check;
    unsigned show_kinds;               // bits 1 << enum leak_kind
    unsigned heuristics;               // bits 1 << enum leak_heuristic
    struct suppressions *suppressions; // NULL: there are none
    bool generate;                     // show a suppression for each loss
    bool list;                         // show which ones were used
};

// Limits of a run (supervisor/budgets.h).
struct budget_settings {
    struct budget limits[BUDGETS];
    int status;       // to exit with when one is exceeded
    int error_status; // --error-exitcode; 0: not given
};

// Whether findings of the diagnosis are said: as the tool does by itself, always, never; and
// whether they fail a run.
enum diagnose_wish { DIAGNOSE_AUTO, DIAGNOSE_YES, DIAGNOSE_NO, DIAGNOSE_ERROR };

// A target whose heap is recorded: natively, with the recorder, or translated.
struct heap_settings {
    enum heap_tool tool;
    const char *recorder;    // path of quern-recorder.so; NULL: the engine records
    const char *out_file;    // template
    const char *description; // the tool's options as given, NULL when there were none
    struct massif_options massif;
    double threshold;
    struct heap_names_options names;
    struct heap_leak_settings leaks;
    uint64_t max_size;        // bytes of a recording; 0: any number
    size_t top;               // stacks in each list of a summary
    const char *note;         // shown at the start; may be NULL
    const char *xtree_memory; // as in findings_settings
    bool xtree_compress;
};

enum flame_sampler { FLAME_ANY, FLAME_PERF, FLAME_TIMERS };

// A target that runs natively and is sampled.
struct flame_settings {
    unsigned frequency; // samples in a second of CPU time; 0: not this tool
    size_t stack_bytes; // of the stack, copied with each sample
    bool children;      // programs that the target executes are sampled too
    enum flame_sampler sampler;
    const char *agent;                          // path of quern-sampler.so; NULL: it is missing
    bool is_static;                             // the program: nothing can be preloaded
    bool without_kernel;                        // time in the kernel does not count
    bool off_cpu;                               // waits are told, too
    const char *waits_file, *waits_stacks_file; // templates
    bool inverted;
    bool all_inlined;        // also where debug information is in a file of its own
    const char *out_file;    // template
    const char *stacks_file; // template
    const char *folded_file; // template, NULL: not wanted
};

// For tools that count (wire/call_counts.h).
struct counts_settings {
    const char *file; // template; NULL: the tool does not count
    bool lines, instructions;
    bool compress_strings, compress_positions;
    bool cachegrind; // that tool's file and order of events
    bool separate_threads;
    bool combine; // dumps in one file
};

struct dhat_settings {
    const char *file; // template; NULL: not this tool
};

struct xml_settings {
    bool wanted;
    enum log_kind kind;
    int fd;
    const char *place;   // file template, or address:port
    const char *comment; // copied as it is; NULL: none
};

enum error_list { LIST_NO, LIST_YES, LIST_ALL };
enum generate_suppressions { GENERATE_NO, GENERATE_ASK, GENERATE_ALL };

// For tools that find errors (wire/findings.h).
struct findings_settings {
    bool wanted; // the tool finds errors
    struct suppressions *suppressions;
    enum leak_check leak_check;
    unsigned show_kinds, error_kinds; // of leaks: bits 1 << enum leak_kind
    bool track_origins;
    bool limit;
    bool exit_on_first;
    int error_status; // 0: the target's own
    enum error_list list;
    enum generate_suppressions generate;
    int input_fd;             // where answers are read from
    const char *xtree_leak;   // a file for losses (--xtree-leak-file); NULL: they are shown
    const char *xtree_memory; // a file for the heap by place (--xtree-memory-file); NULL: none
    bool xtree_memory_full;   // all that ever was, not only what is alive
    bool xtree_compress;      // names in these are written once
    const char *marker_begin; // NULL: none
    const char *marker_end;
};

// Waiting for a server, and a load for it (scenario.h).
struct scenario_settings {
    int port;         // 0: not waited for
    const char *log;  // a regular expression; NULL: not waited for
    long timeout;     // seconds to wait
    const char *load; // a command for the shell; NULL: none
};

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

struct supervisor_request {
    const char *tool;
    const char *tool_help;      // what the banner says of it
    const char *program;        // the file to run
    char *const *argv;          // the target's, argv[0] as the user typed it
    const char *engine;         // path of quern-engine; NULL: the target runs natively
    const char *const *options; // "name=value" for the engine, in order
    size_t option_count;
    struct log_settings log;
    struct symbols_options symbols;
    struct stack_text_options stacks;
    struct heap_settings heap;
    struct flame_settings flame;
    struct counts_settings counts;
    struct dhat_settings dhat;
    struct findings_settings findings;
    struct xml_settings xml;
    struct output_settings outputs;
    struct budget_settings budgets;
    enum diagnose_wish diagnose;
    struct scenario_settings scenario;
    struct option_changer changer;
    const char *const *own_words; // the command line before the program; NULL at the end
    long duration;                // seconds after which the target is stopped; 0: never
    bool silent_after_fork;       // mute a forked child until it execs
    const char *const *remarks;   // lines for -v: where options came from, what has no effect
    size_t remark_count;
};

// Runs the target to its end. The exit status for the supervisor; does not return when the target
// ended by a signal (the supervisor ends by the same one).
int supervisor_run(const struct supervisor_request *request);

#endif
