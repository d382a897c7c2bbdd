// What the parts of memcheck's supervisor half share: the findings of a run, and of one process.
//
// Words
//   context   a set of equal findings; its first one is kept and shown
//   loss      blocks of one kind and stack that a leak search has found
//   ledger    the memory in which a process counts its findings (wire/findings.h)
//   search    one leak search. Its losses arrive in several messages
//   hidden    taken by a suppression
#ifndef QUERN_SUPERVISOR_FINDINGS_PARTS_H
#define QUERN_SUPERVISOR_FINDINGS_PARTS_H

#include "supervisor/tool.h"
#include "wire/findings.h"
#include "tools/memcheck/supervisor/findings.h"

// The numbers of shown contexts after which fewer frames are compared, and after which no more are
// shown.
enum { SHOWN_IN_DETAIL = 100, SHOWN_AT_MOST = 1000 };

struct context {
    uint32_t number;
    uint64_t unique; // in XML
    struct named_finding *finding;
    struct suppression *suppressed_by; // NULL: shown
    struct result *result;             // NULL: nobody wants it
    uint64_t count;                    // from the ledger, at the end
};

// Losses that a suppression took.
struct hidden_loss {
    struct suppression *by;
    uint64_t bytes, blocks;
};

struct search {
    bool active; // announced, not all losses are there yet
    bool done;   // all losses are there
    struct wire_leaks facts;
    struct named_loss *losses;
    size_t count;
    struct leak_sums old_sums; // of the search before
};

struct thread_number {
    int tid, number;
};

struct process_findings {
    struct findings *run;
    int pid;
    int ledger;         // file, -1: none
    bool ledger_is_new; // it belongs to the program that is about to say hello
    bool muted;
    bool closed;      // no more contexts are shown (--error-limit)
    bool told_detail; // the log has said that they are compared in less detail
    bool stopped;     // by --exit-on-first-error
    bool ended;       // and has sent everything
    bool has_values;  // uninitialised values are among those shown
    int last_thread;  // that was named in the log
    uint64_t next_unique;
    struct heap_sums heap; // once ended
    struct context *contexts;
    size_t context_count;
    size_t shown_count;
    struct hidden_loss *hidden;
    size_t hidden_count;
    uint64_t counted_losses;    // losses that count for --error-exitcode
    uint64_t known_leaks;       // of these, in the baseline
    struct search search;       // the latest
    struct leak_sums last_sums; // of the latest search
    struct named_cache *cache;
    struct thread_number *threads;
    size_t thread_count;
};

struct findings {
    const struct supervisor_request *request;
    const struct findings_settings *settings;
    struct symbols *symbols;
    struct log *log;
    const struct followed_table *followed;
    bool ask; // --gen-suppressions=yes, until the answer is C
    int main_pid;
    bool main_failed;
    struct process_findings **processes;
    size_t process_count;
};

static inline const struct findings_settings *settings_of(const struct process_findings *process) {
    return process->run->settings;
}

// NULL: it is not known.
struct process_findings *findings_of_process(const struct findings *, int pid);
struct naming findings_naming(struct process_findings *process);
// Prints the text of a finding or loss: markers, thread line, text, blank line. Then the
// suppression, if it is wanted; NULL: there is none.
void findings_show(struct process_findings *process, int thread, const char *thread_name,
                   const char *text, const char *suppression);
void findings_say(struct process_findings *process, const char *text);
void findings_stop(struct process_findings *process); // --exit-on-first-error

// ledger.c
bool ledger_read(const struct process_findings *, size_t offset, void *to, size_t size);
void ledger_answer_verdict(const struct process_findings *, uint32_t context, enum ledger_verdict);
void ledger_answer_closed(const struct process_findings *);
void ledger_answer_search(const struct process_findings *);
void ledger_answer_end(const struct process_findings *, bool failed);

// leaks.c
void leaks_begin(struct process_findings *, const struct wire_leaks *message);
void leaks_add(struct process_findings *, const struct wire_loss *losses, size_t size);
// The losses and the summary of the search, or the first loss if the process stops there.
void leaks_show(struct process_findings *);
bool leaks_stop(const struct process_findings *);
void leaks_check(struct process_findings *); // limits, and the diagnosis
void leaks_drop(struct process_findings *);

// xtree.c
void leaks_write_xtree(struct process_findings *);  // instead of showing losses
void memory_write_xtree(struct process_findings *); // if it is wanted

// summary.c
void summary_count(struct process_findings *);              // reads the ledger
uint64_t summary_failures(const struct process_findings *); // findings that are not in the baseline
void summary_show(struct process_findings *);

#endif
