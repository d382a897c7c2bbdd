#include "cli/statuses.h"

const struct status_word status_words[] = {
    {"the program's own",
     "none of the cases below; if a signal ended the program, quern ends by the same signal"},
    {"0", "the program was stopped on request (--duration, --load, quern ctl PID stop) and has no "
          "status of its own; a verb succeeded"},
    {"--error-exitcode",
     "there are errors that are not in the baseline, even if a signal ended the program; a limit "
     "such as --max-peak was exceeded; or --diagnose=error found a problem"},
    {"1", "a limit was exceeded or --diagnose=error found a problem, without --error-exitcode; an "
          "option, a file or the program is invalid; a file cannot be written; the program was not "
          "ready in time; the load failed"},
    {"2", "a verb read a recording that is cut off, damaged, still being written or lacks events, "
          "and used the rest "
          "(print says so in its output, with status 0)"},
    {"3", "quern diff --fail-above: the total has grown by more; quern check: a check failed"},
    {"126", "the program cannot be run"},
    {"127", "the program was not found"},
};
const size_t status_count = sizeof status_words / sizeof *status_words;
