// memcheck's settings in the supervisor: made from the options before the run (the hook
// `settings`). During the run they change only when the target asks for it (the hook `changed`).
#ifndef QUERN_TOOLS_MEMCHECK_SETTINGS_H
#define QUERN_TOOLS_MEMCHECK_SETTINGS_H

#include "supervisor/tool.h"
#include "tools/shared/supervisor/error_settings.h"

enum error_list { LIST_NO, LIST_YES, LIST_ALL };
enum generate_suppressions { GENERATE_NO, GENERATE_ASK, GENERATE_ALL };

struct findings_settings {
    struct suppressions *suppressions;
    enum leak_check leak_check;
    unsigned show_kinds, error_kinds; // of leaks: bits 1 << enum leak_kind
    bool track_origins;
    bool limit;
    bool exit_on_first;
    enum error_list list;
    enum generate_suppressions generate;
    int input_fd;             // where answers are read from
    const char *xtree_leak;   // a file for losses (--xtree-leak-file); NULL: they are shown
    const char *xtree_memory; // a file for the heap by place (--xtree-memory-file); NULL: none
    bool xtree_memory_full;   // all that ever was, not only what is alive
    bool xtree_compress;      // names in these are written once
    char *marker_begin;       // NULL: none
    const char *marker_end;
};

// The state of a run (supervisor/tool.h).
struct findings;
struct memcheck {
    struct findings_settings settings;
    struct findings *findings; // NULL: the run has not begun
};

// Hooks of supervisor/tool.h.
void *memcheck_settings(struct tool_setup *setup);
char *memcheck_changed(void *state, struct tool_setup *setup, const struct option *option);
bool memcheck_knows(const void *state, enum budget_kind kind);
void memcheck_release(void *state);

#endif
