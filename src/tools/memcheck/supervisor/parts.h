// What findings.c, supervisor/leaks.c and supervisor/summary.c share: the errors of one process.
#ifndef QUERN_SUPERVISOR_FINDINGS_PARTS_H
#define QUERN_SUPERVISOR_FINDINGS_PARTS_H

#include "report/findings/finding.h"
#include "report/results/results.h"
#include "report/findings/suppressions.h"
#include "tools/memcheck/supervisor/findings.h"

// Contexts shown, after which they are compared in less detail, and after which none is shown.
enum { SHOWN_IN_DETAIL = 100, SHOWN_AT_MOST = 1000 };

struct context {
    uint32_t number;
    uint64_t unique; // in XML
    struct finding *finding;
    struct suppression *suppressed_by; // NULL: shown
    struct result *result;             // NULL: nobody wants it
    uint64_t count;                    // from the ledger, at the end
};

// Losses that a suppression took.
struct hidden_loss {
    struct suppression *by;
    uint64_t bytes, blocks;
};

struct leak_sums {
    uint64_t bytes[LOSS_KINDS + 1], blocks[LOSS_KINDS + 1]; // the last is for suppressed ones
};

struct search {
    bool active; // announced, not all losses are there yet
    bool done;   // at the end of the process
    struct wire_leaks facts;
    struct loss *losses;
    size_t count;
    struct leak_sums sums, old_sums;
};

struct thread_number {
    int tid, number;
};

struct errors {
    int pid;
    int ledger;         // file, -1: none
    bool ledger_is_new; // it belongs to the program that is about to say hello
    bool muted;
    bool closed;      // no more are shown (--error-limit)
    bool told_detail; // that they are compared in less detail
    bool stopped;     // by --exit-on-first-error
    bool ended;       // has said all
    bool has_values;  // uninitialised values are among those shown
    int last_thread;  // that was named in the log
    uint64_t next_unique;
    struct heap_sums heap; // once ended
    struct context *contexts;
    size_t context_count;
    size_t shown_count;
    struct hidden_loss *hidden;
    size_t hidden_count;
    uint64_t leak_errors; // losses that count as errors
    uint64_t known_leaks; // of these, in the baseline
    struct search search;
    struct leak_sums last_sums; // of the latest search
    struct named_cache *cache;
    struct thread_number *threads;
    size_t thread_count;
};

struct findings {
    const struct supervisor_request *request;
    const struct findings_settings *settings;
    struct symbols *symbols;
    bool ask; // --gen-suppressions=yes, until the answer is C
    int main_pid;
    bool main_failed;
};
extern struct findings findings;

#define FINDINGS_SETTINGS (findings.settings)

struct naming findings_naming(struct errors *errors);
// Prints one error: markers, thread line, text, blank line; then the suppression, if wanted.
// `raw` is the suppression.
void findings_show(struct errors *errors, int thread, const char *thread_name, const char *text,
                   const char *raw);
void findings_say(struct errors *errors, const char *text);

// supervisor/leaks.c
void leaks_begin(struct errors *errors, const struct wire_leaks *message);
void leaks_add(struct errors *errors, const struct wire_loss *losses, size_t size);
// Instead of showing losses.
void leaks_write_xtree(struct errors *);
void leaks_show(struct errors *errors);  // the losses and the summary of the search
void leaks_check(struct errors *errors); // limits, and what stands out
void leaks_drop(struct errors *errors);

// supervisor/xtree.c
void memory_write_xtree(struct errors *); // if it is wanted

// supervisor/summary.c
void summary_count(struct errors *errors);              // reads the ledger
uint64_t summary_failures(const struct errors *errors); // errors that are not in the baseline
void summary_show(struct errors *errors);

#endif
