// The findings of the race detector, as the supervisor takes, judges, shows and counts them.
#ifndef QUERN_RACES_SUPERVISOR_RACES_H
#define QUERN_RACES_SUPERVISOR_RACES_H

#include "supervisor/tool.h"

struct races_settings {
    struct suppressions *suppressions;
    bool generates, lists, lists_all, exits_on_first;
};

struct races_context {
    uint32_t number;
    struct named_finding *finding; // NULL: how threads synchronise, not a finding
    struct suppression *suppressed_by;
    struct result *result;
    uint64_t unique, count;
};

struct races_creation {
    int thread;
    bool is_shown;
    uint64_t *pcs;
    size_t count;
};

struct races_process {
    int pid;
    int ledger; // -1: none
    bool ledger_is_new, is_stopped, has_ended;
    uint64_t next_unique;
    uint32_t shown;
    struct races_context *contexts;
    size_t context_count;
    struct races_creation *creations;
    size_t creation_count;
    struct named_cache *cache;
};

struct races {
    struct races_settings settings;
    struct races_process **processes;
    size_t process_count;
    bool main_failed;
};

struct races_process *races_find(const struct races *, int pid);
struct races_process *races_find_or_add(struct races *, int pid);
void races_forget(struct races *, struct races_process *);
struct naming races_naming(const struct tool_run *, struct races_process *);
bool races_take(struct tool_run *, struct followed *, const struct wire_message *);

// Whether the instruction at pc belongs to an atomic operation, as debug information has it.
enum atomic_code { CODE_IS_PLAIN, CODE_IS_ATOMIC, CODE_IS_UNKNOWN };
enum atomic_code atomics_look(struct symbols *, int pid, uint64_t pc);

void races_count(struct races_process *); // reads the ledger
uint64_t races_failures(const struct races_process *);
void races_summary(struct tool_run *, struct followed *, struct races_process *);
void races_say(struct tool_run *, const struct followed *, const char *text);

extern const struct option races_options[];

#endif
