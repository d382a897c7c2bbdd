// quern ctl PID REQUEST: sends a request to a run.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "base/control.h"

static int send_request(long pid, const char *request) {
    static char answer[65536];
    int failure = control_ask((int)pid, request, answer, sizeof answer);
    if (failure == ENOENT || failure == ECONNREFUSED)
        return words_fail("process %ld does not run under Quern, or is not the first of its run",
                          pid);
    if (failure)
        return words_fail("no answer from the run of process %ld: %s", pid, strerror(failure));
    if (strncmp(answer, "ok", 2) != 0)
        return words_fail("%s", answer);
    if (answer[2])
        puts(answer + 3);
    return words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
}

static int run_ctl(const struct arguments *arguments) {
    char *end;
    const char *number = arguments->operands[0];
    long pid = strtol(number, &end, 10);
    if (*end || pid <= 0 || pid > 1 << 30)
        return words_fail("'%s' is not the number of a process", number);
    struct text request = {0};
    for (size_t i = 1; i < arguments->operand_count; i++)
        text_format(&request, "%s%s", i > 1 ? " " : "", arguments->operands[i]);
    int status = request.size < CONTROL_MOST
                     ? send_request(pid, request.bytes)
                     : words_fail("the request is longer than %d bytes", CONTROL_MOST - 1);
    text_free(&request);
    return status;
}

static bool offer_requests(size_t index, struct option_choice *choice) {
    static const struct option_choice requests[] = {
        {.name = "status", .help = "show the tool and its progress"},
        {.name = "stop", .help = "stop the program as --duration does, and report"},
        {.name = "dump [WHY]",
         .help = "callgrind, cachegrind: write the counts since the last dump"},
        {.name = "zero", .help = "callgrind, cachegrind: reset all counts"},
        {.name = "off, on",
         .help = "callgrind: stop or resume counting; flame: stop or resume sampling"},
        {.name = "snapshot",
         .help = "massif: take a detailed snapshot and write all snapshots; heap: write everything "
                 "recorded so far"},
        {.name = "leaks", .help = "heap, massif: search for blocks that no pointer refers to"},
    };
    if (index >= sizeof requests / sizeof *requests)
        return false;
    *choice = requests[index];
    return true;
}

static const struct verb_list lists[] = {{"Requests", offer_requests}, {0}};

const struct verb verb_ctl = {
    .name = "ctl",
    .usage = "PID REQUEST",
    .help = "send a request to a run: status, stop, dump, snapshot, ...",
    .description = "PID is the process id in front of the log's lines, of the run's first process.",
    .lists = lists,
    .operands_least = 2,
    .takes_dashes = true,
    .run = run_ctl,
};
