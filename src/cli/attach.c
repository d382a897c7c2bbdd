// quern attach PID: the plain form of quern heap --pid=PID, which main.c makes of it.
#include "cli/arguments.h"
#include "cli/verbs.h"

static int run_attach(const struct arguments *arguments) {
    return help_usage_error(arguments->verb);
}

const struct verb verb_attach = {
    .name = "attach",
    .usage = "PID [options]",
    .help = "record the heap of a running process",
    .description =
        "Loads the recorder into the process, records until --duration=SECONDS is over, Ctrl+C is "
        "pressed or the process ends, and reports. The process then goes on as before. It is short "
        "for quern heap --pid=PID, and takes that tool's options; massif, and dhat with "
        "--mode=native, have --pid as well.\n"
        "docs/attach.md says what is needed, and what the process notices.",
    .operands_least = 1,
    .run = run_attach,
};
