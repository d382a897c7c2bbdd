#include "cli/run/findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/results/results.h"
#include "wire/findings.h"

static bool is(const struct option_values *values, const char *name, const char *value) {
    return strcmp(option_text(values, name), value) == 0;
}

// Bits 1 << enum loss_kind from "definite,possible".
static unsigned leak_kinds(const char *list) {
    static const char *const names[LOSS_KINDS] = {"definite", "indirect", "possible", "reachable"};
    unsigned kinds = 0;
    char *copy = base_copy(list);
    for (char *rest = copy, *word; (word = strsep(&rest, ","));) {
        if (strcmp(word, "all") == 0)
            kinds = (1u << LOSS_KINDS) - 1;
        for (unsigned i = 0; i < LOSS_KINDS; i++)
            if (strcmp(word, names[i]) == 0)
                kinds |= 1u << i;
    }
    free(copy);
    return kinds;
}

void run_heap_leaks(const struct option_values *values, struct heap_leak_settings *leaks) {
    static const char *const names[] = {"stdstring", "length64", "newarray", "multipleinheritance"};
    leaks->check = !option_given(values, "leak-check") || is(values, "leak-check", "no")
                       ? LEAK_CHECK_NO
                   : is(values, "leak-check", "summary") ? LEAK_CHECK_SUMMARY
                                                         : LEAK_CHECK_FULL;
    leaks->show_kinds = leak_kinds(option_text(values, "show-leak-kinds"));
    const char *list = option_text(values, "leak-check-heuristics");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(list, names[i]) || strcmp(list, "all") == 0)
            leaks->heuristics |= 1u << i;
}

static bool lists_errors(const struct option_values *values) {
    return option_given(values, "show-error-list") ? !is(values, "show-error-list", "no")
                                                   : option_given(values, "s");
}

static void choose_lists(const struct option_values *values, struct findings_settings *findings) {
    findings->list = is(values, "show-error-list", "all") ? LIST_ALL
                     : lists_errors(values)               ? LIST_YES
                                                          : LIST_NO;
    findings->generate = is(values, "gen-suppressions", "all")   ? GENERATE_ALL
                         : is(values, "gen-suppressions", "yes") ? GENERATE_ASK
                                                                 : GENERATE_NO;
}

static void choose_leaks(const struct option_values *values, struct findings_settings *findings,
                         bool xml) {
    findings->leak_check = is(values, "leak-check", "no")        ? LEAK_CHECK_NO
                           : is(values, "leak-check", "summary") ? LEAK_CHECK_SUMMARY
                                                                 : LEAK_CHECK_FULL;
    findings->xtree_leak =
        option_yes(values, "xtree-leak") ? option_text(values, "xtree-leak-file") : NULL;
    findings->xtree_compress = option_yes(values, "xtree-compress-strings");
    if (xml || findings->xtree_leak)
        findings->leak_check = LEAK_CHECK_FULL;
    findings->show_kinds =
        leak_kinds(findings->xtree_leak ? "all" : option_text(values, "show-leak-kinds"));
    findings->error_kinds = leak_kinds(option_text(values, "errors-for-leak-kinds"));
    if (option_given(values, "show-reachable")) {
        if (option_yes(values, "show-reachable"))
            findings->show_kinds = (1u << LOSS_KINDS) - 1;
        else
            findings->show_kinds &= ~(1u << LOSS_REACHABLE);
    }
    if (option_given(values, "show-possibly-lost")) {
        findings->show_kinds &= ~(1u << LOSS_POSSIBLE);
        if (option_yes(values, "show-possibly-lost"))
            findings->show_kinds |= 1u << LOSS_POSSIBLE;
    }
}

static char *choose_memory(const struct option_values *values, struct findings_settings *findings) {
    if (is(values, "xtree-memory", "none"))
        return NULL;
    if (strncmp(option_text(values, "keep-stacktraces"), "alloc", strlen("alloc")) != 0)
        return base_copy("--xtree-memory needs to know where blocks were allocated: "
                         "leave --keep-stacktraces out");
    findings->xtree_memory = option_text(values, "xtree-memory-file");
    findings->xtree_memory_full = is(values, "xtree-memory", "full");
    return NULL;
}

static char *choose_markers(const struct option_values *values,
                            struct findings_settings *findings) {
    const char *markers = option_text(values, "error-markers");
    free((char *)findings->marker_begin);
    findings->marker_begin = findings->marker_end = NULL;
    if (!markers)
        return NULL;
    const char *comma = strchr(markers, ',');
    if (!comma)
        return base_copy("bad option: --error-markers needs two texts with a comma between them");
    struct text begin = {0};
    text_add(&begin, markers, (size_t)(comma - markers));
    if (begin.size)
        findings->marker_begin = text_take(&begin);
    text_free(&begin);
    if (comma[1])
        findings->marker_end = comma + 1;
    return NULL;
}

static char *fatal(char *reason) {
    struct text message = {0};
    text_format(&message, "FATAL: %s", reason);
    free(reason);
    return text_take(&message);
}

static char *read_suppressions(const struct option_values *values, const char *default_file,
                               struct suppressions *suppressions) {
    const struct option_value *files = option_items(values, "suppressions");
    char *error = NULL;
    if (option_yes(values, "default-suppressions")) {
        if (!default_file)
            return base_copy("default.supp is missing; reinstall or rebuild Quern");
        error = suppressions_read(suppressions, default_file);
    }
    for (size_t i = 0; i < files->count && !error; i++)
        error = suppressions_read(suppressions, files->items[i]);
    return error ? fatal(error) : NULL;
}

// A search may be asked for at any moment of the run; what is usual is not hidden then.
static char *choose_heap_suppressions(const struct option_values *values, const char *default_file,
                                      struct heap_leak_settings *leaks) {
    if (is(values, "gen-suppressions", "yes"))
        return base_copy("--gen-suppressions=yes asks questions while the program stands still, "
                         "which only memcheck does; use --gen-suppressions=all");
    leaks->generate = is(values, "gen-suppressions", "all");
    leaks->list = lists_errors(values);
    if (leaks->check == LEAK_CHECK_NO && !option_given(values, "suppressions"))
        return NULL;
    leaks->suppressions = suppressions_new();
    return read_suppressions(values, default_file, leaks->suppressions);
}

static char *choose_xml(const struct option_values *values, struct xml_settings *xml) {
    if (!option_yes(values, "xml"))
        return NULL;
    xml->wanted = true;
    xml->comment = option_text(values, "xml-user-comment");
    if (is(values, "gen-suppressions", "yes"))
        return base_copy("--gen-suppressions=yes asks questions, which does not go with "
                         "--xml=yes; use --gen-suppressions=all");
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

static char *choose_outputs(const struct option_values *values, struct output_settings *outputs) {
    char *error = NULL;
    outputs->sarif = option_text(values, "sarif-file");
    outputs->junit = option_text(values, "junit-file");
    outputs->json = option_text(values, "json-file");
    outputs->github = option_given(values, "github");
    if (option_given(values, "baseline"))
        outputs->baseline = baseline_read(option_text(values, "baseline"), &error);
    return error ? fatal(error) : NULL;
}

char *run_findings(const struct supervisor_tool *tool, const struct option_values *values,
                   const char *default_file, struct supervisor_request *request) {
    struct findings_settings *findings = &request->findings;
    char *error = choose_outputs(values, &request->outputs);
    if (error)
        return error;
    if (request->heap.tool)
        return choose_heap_suppressions(values, default_file, &request->heap.leaks);
    if (strcmp(tool->name, "memcheck") != 0)
        return NULL;
    error = choose_xml(values, &request->xml);
    if (error)
        return error;
    if (option_yes(values, "track-origins") && !option_yes(values, "undef-value-errors"))
        return base_copy("--track-origins=yes needs --undef-value-errors=yes");
    *findings = (struct findings_settings){
        .wanted = true,
        .suppressions = suppressions_new(),
        .track_origins = option_yes(values, "track-origins"),
        .limit = option_yes(values, "error-limit"),
        .exit_on_first = option_yes(values, "exit-on-first-error"),
        .error_status = (int)option_number(values, "error-exitcode"),
        .input_fd = (int)option_number(values, "input-fd"),
    };
    choose_lists(values, findings);
    choose_leaks(values, findings, request->xml.wanted);
    error = choose_memory(values, findings);
    if (!error)
        error = choose_markers(values, findings);
    return error ? error : read_suppressions(values, default_file, findings->suppressions);
}

// ---- changes while the target runs -------------------------------------------------------------

static const struct option *option_of(const char *word) {
    if (word[0] != '-' || !word[1])
        return NULL;
    if (word[1] != '-')
        return word[2] ? NULL : option_find_letter(word[1]);
    return option_find(word + 2, strcspn(word + 2, "="));
}

// Brings the settings in line with the values; NULL, or why not.
static char *settle(const struct run_options *run, const struct option *option) {
    struct supervisor_request *request = run->request;
    choose_lists(run->values, &request->findings);
    choose_leaks(run->values, &request->findings, request->xml.wanted);
    request->stacks.show_below_main = option_yes(run->values, "show-below-main");
    request->stacks.symbol_offsets = option_yes(run->values, "sym-offsets");
    if (strcmp(option->name, "suppressions") == 0)
        return suppressions_read(request->findings.suppressions,
                                 option_text(run->values, "suppressions"));
    return choose_markers(run->values, &request->findings);
}

char *run_change_option(void *run_options, const char *word) {
    const struct run_options *run = run_options;
    const struct option *option = option_of(word);
    struct text said = {0};
    if (!option || !option_serves(option, run->tool)) {
        text_format(&said, "Ignoring dynamic change to unrecognised option %s", word);
        return text_take(&said);
    }
    // Who is asked about suppressions waits from the start.
    if (!option->dynamic || strcmp(word, "--gen-suppressions=yes") == 0) {
        text_format(&said, "Cannot change --%s option dynamically", option->name);
        return text_take(&said);
    }
    char *error = options_apply(run->values, run->tool, word, SOURCE_COMMAND_LINE, NULL);
    if (!error)
        error = settle(run, option);
    bool whole = option->type == OPTION_FLAG || (option->type == OPTION_CHOICE && !option->local);
    if (error)
        text_format(&said, "Ignoring dynamic change to %s: %s", word, error);
    else if (whole)
        text_format(&said, "Handling new value %s for option %s", word, word);
    else
        text_format(&said, "Handling new value %s for option --%s", word, option->name);
    free(error);
    return text_take(&said);
}
