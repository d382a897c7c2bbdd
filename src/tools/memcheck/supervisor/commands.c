// Commands of gdb's user about errors: v.info all_errors, last_error, n_errs_found.
#include <inttypes.h>
#include <string.h>

#include "tools/memcheck/supervisor/parts.h"

// Lines of the log that belong to the command go to whoever gave it.
static void show_error(struct process_findings *process, const struct context *context) {
    struct text text = {0};
    finding_text(context->finding, &process->run->request->stacks, &text);
    findings_say(process, text.bytes);
    findings_say(process, "");
    text_free(&text);
}

static void show_all(struct process_findings *process) {
    uint64_t found = 0, contexts = 0, suppressed = 0, suppressed_contexts = 0;
    struct text line = {0};
    for (size_t i = 0; i < process->context_count; i++) {
        const struct context *context = &process->contexts[i];
        if (context->suppressed_by) {
            suppressed += context->count;
            suppressed_contexts++;
            continue;
        }
        found += context->count;
        contexts++;
        text_format(&line, "%" PRIu64 " errors in context %" PRIu64 " of %zu:", context->count,
                    contexts, process->shown_count);
        findings_say(process, line.bytes);
        text_free(&line);
        show_error(process, context);
    }
    text_format(&line,
                "ERROR SUMMARY: %" PRIu64 " errors from %" PRIu64 " contexts (suppressed: %" PRIu64
                " from %" PRIu64 ")",
                found, contexts, suppressed, suppressed_contexts);
    findings_say(process, line.bytes);
    text_free(&line);
}

static void show_last(struct process_findings *process) {
    size_t i = process->context_count;
    while (i && process->contexts[i - 1].suppressed_by)
        i--;
    if (i)
        show_error(process, &process->contexts[i - 1]);
    else
        findings_say(process, "No errors yet");
}

static void show_count(const struct process_findings *process, const char *message,
                       struct text *answer) {
    uint64_t found = 0;
    for (size_t i = 0; i < process->context_count; i++)
        if (!process->contexts[i].suppressed_by)
            found += process->contexts[i].count;
    text_format(answer, "n_errs_found %" PRIu64 " n_errs_shown %zu %s\n", found,
                process->shown_count, message);
}

bool findings_command(struct findings *run, int pid, const char *command, struct text *answer) {
    static const char all[] = "v.info all_errors", last[] = "v.info last_error",
                      count[] = "v.info n_errs_found";
    struct process_findings *process = findings_of_process(run, pid);
    if (!process)
        return false;
    summary_count(process);
    if (strncmp(command, all, sizeof all - 1) == 0)
        show_all(process);
    else if (strcmp(command, last) == 0)
        show_last(process);
    else if (strncmp(command, count, sizeof count - 1) == 0)
        show_count(process, command + sizeof count - 1 + (command[sizeof count - 1] == ' '),
                   answer);
    else
        return false;
    return true;
}
