// How the supervisor sees helgrind: its hooks.
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "tools/races/supervisor/races.h"
#include "tools/shared/supervisor/error_settings.h"

static char *choose_xml(const struct option_values *values, struct xml_settings *xml) {
    if (!option_yes(values, "xml"))
        return NULL;
    xml->wanted = true;
    xml->comment = option_text(values, "xml-user-comment");
    xml->protocol = option_is(values, "xml-protocol", "6") ? 6 : 4;
    if (option_given(values, "xml-file")) {
        xml->kind = LOG_TO_FILE;
        xml->place = option_text(values, "xml-file");
    } else if (option_given(values, "xml-socket")) {
        xml->kind = LOG_TO_SOCKET;
        xml->place = option_text(values, "xml-socket");
    } else if (option_given(values, "xml-fd")) {
        xml->kind = LOG_TO_FD;
        xml->fd = (int)option_number(values, "xml-fd");
    } else {
        return base_copy("--xml=yes needs a place to write to: --xml-file, --xml-fd or "
                         "--xml-socket");
    }
    return NULL;
}

static void *settings(struct tool_setup *setup) {
    const struct option_values *values = setup->values;
    struct races *races = base_allocate(sizeof *races);
    *races =
        (struct races){.settings = {.suppressions = suppressions_new_for("Helgrind"),
                                    .generates = option_is(values, "gen-suppressions", "all"),
                                    .lists = error_settings_list(values),
                                    .exits_on_first = option_yes(values, "exit-on-first-error")}};
    if (setup->is_static)
        tool_refuse(setup, "helgrind cannot see the locks of a statically linked program; link it "
                           "dynamically");
    if (option_is(values, "gen-suppressions", "yes"))
        tool_refuse(setup, "helgrind does not ask for each suppression; use "
                           "--gen-suppressions=all");
    tool_refuse_for(setup, choose_xml(values, setup->xml));
    if (!setup->problem)
        tool_refuse_for(setup, error_settings_suppressions(setup, races->settings.suppressions));
    return races;
}

static void release(void *state) {
    struct races *races = state;
    while (races->process_count)
        races_forget(races, races->processes[0]);
    free(races->processes);
    suppressions_free(races->settings.suppressions);
    free(races);
}

// Names of addresses change with the mappings.
static void clear_names(struct tool_run *run, int pid) {
    struct races_process *process = races_find(run->state, pid);
    if (process)
        named_cache_clear(process->cache);
}

static void mapped(struct tool_run *run, struct followed *process,
                   const struct wire_module_map *map) {
    clear_names(run, process->pid);
}

static void unmapped(struct tool_run *run, struct followed *process) {
    clear_names(run, process->pid);
}

// A program may hand its ledger over before it says hello.
static void began(struct tool_run *run, struct followed *followed) {
    struct races_process *process = races_find(run->state, followed->pid);
    if (!process)
        return;
    int ledger = process->ledger_is_new ? process->ledger : -1;
    if (process->ledger_is_new)
        process->ledger = -1;
    races_forget(run->state, process);
    if (ledger >= 0)
        races_find_or_add(run->state, followed->pid)->ledger = ledger;
}

// The child has what its parent has seen.
static void forked(struct tool_run *run, const struct followed *parent, struct followed *child) {
    const struct races_process *from = parent ? races_find(run->state, parent->pid) : NULL;
    if (!from || races_find(run->state, child->pid))
        return;
    struct races_process *to = races_find_or_add(run->state, child->pid);
    to->next_unique = from->next_unique;
    to->shown = from->shown;
    for (size_t i = 0; i < from->context_count; i++) {
        *vector_push(to->contexts, to->context_count) = from->contexts[i];
        if (from->contexts[i].finding)
            named_finding_share(from->contexts[i].finding);
    }
}

static void ended(struct tool_run *run, struct followed *followed) {
    struct races *races = run->state;
    struct races_process *process = races_find(races, followed->pid);
    if (!process)
        return;
    bool counts = !followed->away && process->ledger >= 0;
    if (counts) {
        races_count(process);
        if (!process->is_stopped)
            races_summary(run, followed, process);
    }
    if (followed->pid == run->main_pid)
        races->main_failed = counts && (process->is_stopped || races_failures(process) > 0);
    for (size_t i = 0; i < process->context_count; i++) {
        struct races_context *context = &process->contexts[i];
        if (context->result && context->result->pid == process->pid)
            context->result->count = context->count;
    }
    xml_drop(run->request, process->pid);
    races_forget(races, process);
}

static bool failed(struct tool_run *run) {
    return ((struct races *)run->state)->main_failed;
}

const struct supervisor_tool supervisor_helgrind = {
    .name = "helgrind",
    .plain_name = "races",
    .help = "detector of data races and lock order problems",
    .finds_errors = true,
    .options = races_options,
    .settings = settings,
    .release = release,
    .message = races_take,
    .mapped = mapped,
    .unmapped = unmapped,
    .began = began,
    .forked = forked,
    .ended = ended,
    .failed = failed,
};
