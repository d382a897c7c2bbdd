// quern ctl PID REQUEST: sends a request to a run.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/debug_client.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "base/control.h"

// The process performs it, and stands still meanwhile.
static int give_command(int pid, const char *command) {
    int connection = debug_connect(pid, pid);
    if (connection < 0)
        return WORDS_FAILED;
    bool done = debug_command(connection, command);
    debug_disconnect(connection);
    return done && words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
}

static int send_request(long pid, const char *request) {
    static char answer[65536];
    int failure = control_ask((int)pid, request, answer, sizeof answer);
    if (failure == ENOENT || failure == ECONNREFUSED)
        return words_fail("process %ld does not run under Quern, or is not the first of its run",
                          pid);
    if (failure)
        return words_fail("no answer from the run of process %ld: %s", pid, strerror(failure));
    if (strcmp(answer, CONTROL_GIVE_COMMAND) == 0)
        return give_command((int)pid, request);
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

// A request as help shows it: one line for all tools that have it.
struct row {
    const struct tool_request *request; // NULL: every run answers it
    const char *name;
    struct text help;
};

static struct row *find_row(struct row *rows, size_t count, const struct tool_request *request) {
    for (size_t i = 0; i < count; i++)
        if (rows[i].request && strcmp(rows[i].request->word, request->word) == 0)
            return &rows[i];
    return NULL;
}

// Adds the request of a tool to the rows: its name to the row of others, or a new row. The new
// number of rows.
static size_t add_request(struct row *rows, size_t count, const char *tool,
                          const struct tool_request *request) {
    struct row *row = find_row(rows, count, request);
    if (row) {
        text_format(&row->help, ", %s", tool);
        return count;
    }
    rows[count] =
        (struct row){.request = request, .name = request->usage ? request->usage : request->word};
    text_string(&rows[count].help, tool);
    return count + 1;
}

static size_t list_requests(struct row **list) {
    size_t count = 2;
    for (size_t i = 0; i < tool_count; i++)
        for (const struct tool_request *r = tool_table[i]->requests; r && r->word; r++)
            count++;
    struct row *rows = *list = base_allocate(count * sizeof *rows);
    rows[0] = (struct row){.name = "status"};
    rows[1] = (struct row){.name = "stop"};
    text_string(&rows[0].help, "show the tool and its progress");
    text_string(&rows[1].help, "stop the program as --duration does, and report");
    count = 2;
    for (size_t i = 0; i < tool_count; i++)
        for (const struct tool_request *r = tool_table[i]->requests; r && r->word; r++)
            if (r->help)
                count = add_request(rows, count, tool_table[i]->name, r);
    for (size_t i = 2; i < count; i++)
        text_format(&rows[i].help, ": %s", rows[i].request->help);
    return count;
}

static bool offer_requests(size_t index, struct option_choice *choice) {
    static struct row *rows;
    static size_t count;
    if (!rows)
        count = list_requests(&rows);
    if (index >= count)
        return false;
    *choice = (struct option_choice){.name = rows[index].name, .help = rows[index].help.bytes};
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
