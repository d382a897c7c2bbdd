#include "tools/shared/supervisor/error_settings.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum leak_check error_settings_leak_check(const struct option_values *values) {
    return option_is(values, "leak-check", "no")        ? LEAK_CHECK_NO
           : option_is(values, "leak-check", "summary") ? LEAK_CHECK_SUMMARY
                                                        : LEAK_CHECK_FULL;
}

bool error_settings_list(const struct option_values *values) {
    return option_given(values, "show-error-list") ? !option_is(values, "show-error-list", "no")
                                                   : option_given(values, "s");
}

static char *fatal(char *reason) {
    struct text message = {0};
    text_format(&message, "FATAL: %s", reason);
    free(reason);
    return text_take(&message);
}

char *error_settings_suppressions(const struct tool_setup *setup,
                                  struct suppressions *suppressions) {
    const struct option_value *files = option_items(setup->values, "suppressions");
    char *error = NULL;
    if (option_yes(setup->values, "default-suppressions")) {
        char *file = setup->find_part("default.supp", R_OK);
        if (!file)
            return base_copy("default.supp is missing; reinstall or rebuild Quern");
        error = suppressions_read(suppressions, file);
        free(file);
    }
    for (size_t i = 0; i < files->count && !error; i++)
        error = suppressions_read(suppressions, files->items[i]);
    return error ? fatal(error) : NULL;
}
