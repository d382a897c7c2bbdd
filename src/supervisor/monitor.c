#include "supervisor/monitor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/hooks.h"

// As `quern ctl` shows it.
static void show_answer(const char *said, struct text *answer) {
    if (strcmp(said, "ok") == 0)
        return;
    text_string(answer,
                strncmp(said, "ok ", 3) == 0 || strncmp(said, "ok\n", 3) == 0 ? said + 3 : said);
    if (answer->size && answer->bytes[answer->size - 1] != '\n')
        text_char(answer, '\n');
}

// The words behind a command; NULL: it is another one.
static const char *after(const char *command, const char *words) {
    size_t size = strlen(words);
    if (strncmp(command, words, size) != 0 || (command[size] && command[size] != ' '))
        return NULL;
    return command + size + strspn(command + size, " ");
}

// ---- v.info ------------------------------------------------------------------------------------

static void add_line(void *answer, const char *line) {
    text_format(answer, "%s\n", line);
}

// For tools that know nothing of memory: code and data have names.
static void show_location(struct tool_run *run, int pid, const char *address, struct text *answer) {
    uint64_t at = strtoull(address, NULL, 0);
    struct symbol_data data;
    if (symbols_resolve_data(run->symbols, pid, at, &data)) {
        text_format(answer,
                    " Address 0x%" PRIx64 " is %" PRIu64 " bytes inside data symbol \"%s\"\n", at,
                    data.offset, data.name);
        return;
    }
    struct stack stack = {.pid = pid, .addresses = &at, .count = 1};
    text_format(answer, " Address 0x%" PRIx64 " is in\n", at);
    stack_text(run->symbols, &stack, &run->request->stacks, add_line, answer);
}

static bool show_information(struct tool_run *run, int pid, const char *what, struct text *answer) {
    const char *rest;
    if ((rest = after(what, "location")) && *rest)
        show_location(run, pid, rest, answer);
    else if (after(what, "all_errors") || after(what, "last_error"))
        text_string(answer, "No errors yet\n");
    else if ((rest = after(what, "n_errs_found")))
        text_format(answer, "n_errs_found 0 n_errs_shown 0 %s\n", rest);
    else
        return false;
    return true;
}

// ---- v.clo -------------------------------------------------------------------------------------

static void change_options(struct tool_run *run, const char *words, struct text *answer) {
    const struct option_changer *changer = &run->request->changer;
    char *copy = base_copy(words), *rest = copy;
    for (char *word; (word = strsep(&rest, " "));) {
        if (!*word)
            continue;
        if (!run->request->tool->changed || !changer->change) {
            text_format(answer, "tool %s has no options that can change\n",
                        run->request->tool->name);
            break;
        }
        char *said = changer->change(changer->context, word);
        text_format(answer, "%s\n", said);
        free(said);
    }
    free(copy);
}

void monitor_perform(struct tool_run *run, const struct followed *process, const char *command,
                     struct text *answer) {
    static const char *const refused[] = {"v.do", "v.translate", "v.info", "v.set", NULL};
    struct text said = {0};
    const char *rest;
    if (hooks_monitor(run, process, command, answer)) {
        // it has answered
    } else if ((rest = after(command, "v.info")) &&
               show_information(run, process->pid, rest, answer)) {
        // likewise
    } else if ((rest = after(command, "v.clo"))) {
        change_options(run, rest, answer);
    } else if (hooks_request(run, command, &said)) {
        show_answer(said.bytes, answer);
    } else {
        unsigned i = 0;
        while (refused[i] && !after(command, refused[i]))
            i++;
        text_format(answer,
                    refused[i] ? "command '%s' is not supported\n"
                               : "command '%s' not recognised\n"
                                 "In gdb,     try 'monitor help'\n"
                                 "In a shell, try 'vgdb help'\n",
                    command);
    }
    text_free(&said);
}

bool monitor_is_command(const struct supervisor_request *request, const char *command) {
    if (!request->engine || !request->debugger.is_enabled)
        return false;
    const struct tool_request *known = request->tool->requests;
    while (known && known->word && !after(command, known->word))
        known++;
    return (known && known->word) || strncmp(command, "v.", 2) == 0 || after(command, "help");
}
