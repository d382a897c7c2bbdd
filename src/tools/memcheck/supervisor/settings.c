#include "tools/memcheck/supervisor/settings.h"

#include <stdlib.h>
#include <string.h>

#include "profile/findings/leaks.h"
#include "tools/memcheck/supervisor/findings.h"

static void choose_lists(const struct option_values *values, struct findings_settings *findings) {
    findings->list = option_is(values, "show-error-list", "all") ? LIST_ALL
                     : error_settings_list(values)               ? LIST_YES
                                                                 : LIST_NO;
    findings->generate = option_is(values, "gen-suppressions", "all")   ? GENERATE_ALL
                         : option_is(values, "gen-suppressions", "yes") ? GENERATE_ASK
                                                                        : GENERATE_NO;
}

static void choose_leaks(const struct option_values *values, struct findings_settings *findings,
                         bool xml) {
    findings->leak_check = error_settings_leak_check(values);
    findings->xtree_leak =
        option_yes(values, "xtree-leak") ? option_text(values, "xtree-leak-file") : NULL;
    findings->xtree_compress = option_yes(values, "xtree-compress-strings");
    if (xml || findings->xtree_leak)
        findings->leak_check = LEAK_CHECK_FULL;
    findings->show_kinds =
        leak_kinds_in(findings->xtree_leak ? "all" : option_text(values, "show-leak-kinds"));
    findings->error_kinds = leak_kinds_in(option_text(values, "errors-for-leak-kinds"));
    if (option_given(values, "show-reachable")) {
        if (option_yes(values, "show-reachable"))
            findings->show_kinds = ALL_LEAK_KINDS;
        else
            findings->show_kinds &= ~(1u << LEAK_REACHABLE);
    }
    if (option_given(values, "show-possibly-lost")) {
        findings->show_kinds &= ~(1u << LEAK_POSSIBLE);
        if (option_yes(values, "show-possibly-lost"))
            findings->show_kinds |= 1u << LEAK_POSSIBLE;
    }
}

static char *choose_memory(const struct option_values *values, struct findings_settings *findings) {
    if (option_is(values, "xtree-memory", "none"))
        return NULL;
    if (strncmp(option_text(values, "keep-stacktraces"), "alloc", strlen("alloc")) != 0)
        return base_copy("--xtree-memory needs to know where blocks were allocated: "
                         "leave --keep-stacktraces out");
    findings->xtree_memory = option_text(values, "xtree-memory-file");
    findings->xtree_memory_full = option_is(values, "xtree-memory", "full");
    return NULL;
}

static char *choose_markers(const struct option_values *values,
                            struct findings_settings *findings) {
    const char *markers = option_text(values, "error-markers");
    free(findings->marker_begin);
    findings->marker_begin = NULL;
    findings->marker_end = NULL;
    if (!markers)
        return NULL;
    const char *comma = strchrnul(markers, ','); // the end may be missing
    struct text begin = {0};
    text_add(&begin, markers, (size_t)(comma - markers));
    if (begin.size)
        findings->marker_begin = text_take(&begin);
    text_free(&begin);
    if (*comma && comma[1])
        findings->marker_end = comma + 1;
    return NULL;
}

static char *choose_xml(const struct option_values *values, struct xml_settings *xml) {
    if (!option_yes(values, "xml"))
        return NULL;
    xml->wanted = true;
    xml->comment = option_text(values, "xml-user-comment");
    xml->protocol = option_is(values, "xml-protocol", "6") ? 6 : 4;
    if (option_is(values, "gen-suppressions", "yes"))
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

// What the engine needs besides the values of options.
static void send_options(struct tool_setup *setup) {
    const struct option_values *values = setup->values;
    // Red zones of a size that was asked for are never narrower.
    if (option_given(values, "redzone-size"))
        tool_send_option(setup, "redzone-asked=yes");
    // XML has all details of leaks.
    if (option_yes(values, "xml") || option_yes(values, "xtree-leak"))
        tool_send_option(setup, "leak-check=full");
}

void *memcheck_settings(struct tool_setup *setup) {
    const struct option_values *values = setup->values;
    struct memcheck *memcheck = base_allocate(sizeof *memcheck);
    struct findings_settings *findings = &memcheck->settings;
    *findings = (struct findings_settings){
        .suppressions = suppressions_new(),
        .track_origins = option_yes(values, "track-origins"),
        .limit = option_yes(values, "error-limit"),
        .exit_on_first = option_yes(values, "exit-on-first-error"),
        .input_fd = (int)option_number(values, "input-fd"),
    };
    tool_refuse_for(setup, choose_xml(values, setup->xml));
    if (option_yes(values, "track-origins") && !option_yes(values, "undef-value-errors"))
        tool_refuse(setup, "--track-origins=yes needs --undef-value-errors=yes");
    choose_lists(values, findings);
    choose_leaks(values, findings, setup->xml->wanted);
    tool_refuse_for(setup, choose_memory(values, findings));
    tool_refuse_for(setup, choose_markers(values, findings));
    if (!setup->problem)
        tool_refuse_for(setup, error_settings_suppressions(setup, findings->suppressions));
    send_options(setup);
    return memcheck;
}

char *memcheck_changed(void *state, struct tool_setup *setup, const struct option *option) {
    struct findings_settings *findings = &((struct memcheck *)state)->settings;
    choose_lists(setup->values, findings);
    choose_leaks(setup->values, findings, setup->xml->wanted);
    if (strcmp(option->name, "suppressions") == 0)
        return suppressions_read(findings->suppressions,
                                 option_text(setup->values, "suppressions"));
    return choose_markers(setup->values, findings);
}

bool memcheck_knows(const void *state, enum budget_kind kind) {
    const struct findings_settings *findings = &((const struct memcheck *)state)->settings;
    return kind == BUDGET_ALLOCATIONS ||
           (kind == BUDGET_LEAKED && findings->leak_check != LEAK_CHECK_NO);
}

void memcheck_release(void *state) {
    struct memcheck *memcheck = state;
    findings_free(memcheck->findings);
    suppressions_free(memcheck->settings.suppressions);
    free(memcheck->settings.marker_begin);
    free(memcheck);
}
