// callgrind_control: requests to the runs of callgrind, all of them or those named.
#include <stdlib.h>
#include <string.h>

#include "base/control.h"
#include "base/option_table.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/debug_client.h"
#include "cli/names/parts.h"
#include "cli/words.h"

static const struct option options[] = {
    {.name = "stat", .letter = 's', .type = OPTION_FLAG, .help = "show what has been counted"},
    {.name = "dump",
     .letter = 'd',
     .type = OPTION_STRING,
     .value = "[WHY]",
     .help = "write the counts so far to a file"},
    {.name = "zero", .letter = 'z', .type = OPTION_FLAG, .help = "reset all counts"},
    {.name = "kill", .letter = 'k', .type = OPTION_FLAG, .help = "end the program"},
    {.name = "instr",
     .letter = 'i',
     .type = OPTION_CHOICE,
     .choices = "on|off",
     .help = "resume or pause the measurement"},
    {STRING("vgdb-prefix", "PREFIX", NULL), .help = "runs with this --vgdb-prefix only"},
    {0},
};

// Whether the run is named: by its number, or by the name of its program.
static bool is_meant(const struct arguments *arguments, const struct debug_process *process) {
    const char *prefix = argument_text(arguments, "vgdb-prefix");
    size_t size = strcspn(process->command, " ");
    const char *slash = memrchr(process->command, '/', size);
    const char *name = slash ? slash + 1 : process->command;
    if (strcmp(process->prefix, prefix ? prefix : "-") != 0)
        return false;
    for (size_t i = 0; i < arguments->operand_count; i++) {
        const char *word = arguments->operands[i];
        if (atoi(word) == process->pid ||
            (strlen(word) == size - (size_t)(name - process->command) &&
             strncmp(word, name, strlen(word)) == 0))
            return true;
    }
    return arguments->operand_count == 0;
}

// The answer without its "ok"; NULL: there is none, or the run is of another tool.
static const char *ask(int pid, const char *request) {
    static char answer[65536];
    if (control_ask(pid, request, answer, sizeof answer) || strncmp(answer, "ok", 2) != 0)
        return NULL;
    return answer[2] ? answer + 3 : "";
}

static bool is_callgrind(int pid) {
    const char *status = ask(pid, "status");
    return status && strstr(status, "tool callgrind");
}

static void show_status(int pid) {
    char *status = base_copy(ask(pid, "status") ?: ""), *rest = status;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line)
            printf("  %s\n", line);
    printf("\n");
    free(status);
}

static bool act(int pid, const char *request) {
    bool done = ask(pid, request) != NULL;
    printf("  %s\n", done ? "OK." : "Error: the run did not do that.");
    return done;
}

static int act_on(const struct arguments *arguments, const struct debug_process *process) {
    const char *why = argument_text(arguments, "dump");
    const char *state = argument_text(arguments, "instr");
    struct text request = {0};
    bool done = true;
    printf("PID %d: %s\n", process->pid, process->command);
    if (argument_given(arguments, "stat"))
        show_status(process->pid);
    if (argument_given(arguments, "dump")) {
        text_format(&request, "dump%s%s", *why ? " " : "", why);
        done &= act(process->pid, request.bytes);
    }
    if (argument_given(arguments, "zero"))
        done &= act(process->pid, "zero");
    if (state)
        done &= act(process->pid, state);
    if (argument_given(arguments, "kill"))
        done &= act(process->pid, "stop");
    text_free(&request);
    return done ? WORDS_DONE : WORDS_FAILED;
}

static int run_callgrind_control(const struct arguments *arguments) {
    struct debug_processes list = debug_list();
    int status = WORDS_DONE;
    size_t count = 0;
    for (size_t i = 0; i < list.count; i++) {
        if (!is_meant(arguments, &list.at[i]) || !is_callgrind(list.at[i].run))
            continue;
        status |= act_on(arguments, &list.at[i]);
        count++;
    }
    if (!count)
        printf("No active callgrind runs detected.\n");
    debug_list_free(&list);
    return words_close(stdout, NULL) ? status : WORDS_FAILED;
}

const struct verb verb_callgrind_control = {
    .name = "callgrind_control",
    .usage = "[options] [PID|NAME...]",
    .help = "send requests to runs of callgrind, as callgrind_control does",
    .description = "Without a PID or the NAME of a program, the requests go to all runs of "
                   "callgrind. Without a request it lists them.",
    .options = options,
    .run = run_callgrind_control,
};
