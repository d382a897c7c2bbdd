// From options to the settings of a recorded run.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/findings/leaks.h"
#include "tools/shared/supervisor/recorded/recorded.h"

#define MOST_FRAMES 250 // of a recorded stack

static void choose_leaks(const struct option_values *values, struct recorded_leaks *leaks) {
    leaks->check =
        option_given(values, "leak-check") ? error_settings_leak_check(values) : LEAK_CHECK_NO;
    leaks->show_kinds = leak_kinds_in(option_text(values, "show-leak-kinds"));
    leaks->heuristics = leak_heuristics_in(option_text(values, "leak-check-heuristics"));
}

// A search may be asked for at any moment of the run; what is usual is not hidden then.
static void choose_suppressions(struct tool_setup *setup, struct recorded_leaks *leaks) {
    const struct option_values *values = setup->values;
    if (option_is(values, "gen-suppressions", "yes"))
        tool_refuse(setup, "--gen-suppressions=yes asks questions while the program stands still, "
                           "which only memcheck does; use --gen-suppressions=all");
    leaks->generate = option_is(values, "gen-suppressions", "all");
    leaks->list = error_settings_list(values);
    if (setup->problem || (leaks->check == LEAK_CHECK_NO && !option_given(values, "suppressions")))
        return;
    leaks->suppressions = suppressions_new();
    tool_refuse_for(setup, error_settings_suppressions(setup, leaks->suppressions));
}

const char *recorded_static_reason(const struct tool_setup *setup) {
    return setup->is_static ? "The program is statically linked: it runs translated, by the "
                              "engine, which is slower"
                            : NULL;
}

void recorded_settings(struct recorded *recorded, struct tool_setup *setup, long depth,
                       const char *translated) {
    const struct option_values *values = setup->values;
    recorded->note = translated ? translated : recorded_static_reason(setup);
    recorded->names.text = *setup->stacks;
    setup->is_native = !recorded->note;
    if (recorded->note && option_given(values, "leak-check") &&
        !option_is(values, "leak-check", "no"))
        tool_refuse(setup,
                    "--leak-check: %s.\nLeaks are searched for natively only; --tool=memcheck "
                    "searches here",
                    recorded->note);
    if (setup->is_native) {
        recorded->recorder = setup->find_part("quern-recorder.so", X_OK);
        if (!recorded->recorder)
            tool_refuse(setup, "quern-recorder.so is missing; reinstall or rebuild Quern");
    }
    recorded->census = option_is(values, "census", "yes")  ? CENSUS_YES
                       : option_is(values, "census", "no") ? CENSUS_NO
                                                           : CENSUS_AUTO;
    choose_leaks(values, &recorded->leaks);
    choose_suppressions(setup, &recorded->leaks);
    // Names are asked for at the end, when libraries may have been unloaded.
    setup->symbols->keep_unmapped = true;
    if (!option_given(values, "leak-check"))
        tool_send_option(setup, "leak-check=no");
    if (!option_is(values, "python-stacks", "no"))
        tool_send_option(setup, "python-stacks=yes");
    tool_send_option(setup, "recorder-depth=%ld", depth < MOST_FRAMES ? depth : MOST_FRAMES);
}
