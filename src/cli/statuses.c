#include "cli/statuses.h"

const struct status_word status_words[] = {
    {"the program's own",
     "nothing below happened; if a signal ended the program, quern ends by the same signal"},
    {"0", "the program was stopped as asked (--duration, --load, quern ctl PID stop) and has no "
          "status of its own; a verb has done its work"},
    {"--error-exitcode",
     "errors were found that are not in the baseline, a limit (--max-peak and its kin) was "
     "exceeded, or with --diagnose=error something stands out"},
    {"1",
     "a limit was exceeded or something stands out, and there is no --error-exitcode; options, "
     "files or the program are not right, or a file cannot be written; it was not ready in time; "
     "the load failed"},
    {"2", "of verbs: a recording that is cut off, damaged or lacks events, of which they "
          "gave what it holds (print says so in its output, with status 0)"},
    {"3", "quern diff --fail-above: it has grown by more; quern check: something is not as it "
          "should be"},
    {"126", "the program cannot be run"},
    {"127", "the program was not found"},
};
const size_t status_count = sizeof status_words / sizeof *status_words;
