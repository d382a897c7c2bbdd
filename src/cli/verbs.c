#include "cli/verbs.h"

#include <string.h>

const struct verb verb_table[] = {
    {"print", "[options] FILE",
     "show any file that tools write, Quern's or Valgrind's, in the terminal", verb_print},
    {"annotate", "[options] FILE...",
     "show costs of functions and lines, from callgrind.out and cachegrind.out", verb_annotate},
    {"export", "FILE --as FORMAT", "write a recording in the format of another program",
     verb_export},
    {"ctl", "PID status|stop|dump|zero|snapshot|leaks", "ask a run that goes on for something",
     verb_ctl},
    {"bench", "[PATTERN...]",
     "what allocators, and Quern's recorder, cost in patterns of allocation", verb_bench},
    {"diagnose", "FILE...", "say what is wrong with a program's memory, from its recording",
     verb_diagnose},
    {"check", "[options] FILE...",
     "fail if what a file says is above a limit; findings as SARIF, JUnit, JSON", verb_check},
    {"diff", "BEFORE AFTER", "compare two recordings: which stacks hold more", verb_diff},
    {"merge", "[-o OUT] FILE...", "add up callgrind.out files, or cachegrind.out files, into one",
     verb_merge},
    {"query", "FILE SQL", "ask a recording in SQL", verb_query},
    {"baseline", "update BASELINE FINDINGS.json...",
     "call what --json-file has written known, for --baseline", verb_baseline},
    {"view", "FILE...", "show files in a browser", verb_view},
    {"help", "[TOOL|VERB]", "the options of a tool, or how a verb is used", verb_help_of},
};
const size_t verb_count = sizeof verb_table / sizeof *verb_table;

const struct verb *verb_find(const char *name) {
    for (size_t i = 0; i < verb_count; i++)
        if (strcmp(verb_table[i].name, name) == 0)
            return &verb_table[i];
    return NULL;
}
