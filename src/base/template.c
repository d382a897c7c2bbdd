#include "base/template.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

// Expands %q{NAME}; `from` is after the q. The first character behind it, or NULL with a reason.
static const char *expand_variable(struct text *out, const char *from, struct text *reason) {
    const char *end = *from == '{' ? strchr(from, '}') : NULL;
    if (!end) {
        text_string(reason, "%q needs the form %q{VARIABLE}");
        return NULL;
    }
    char *name = strndup(from + 1, (size_t)(end - from - 1));
    const char *value = name ? getenv(name) : NULL;
    if (value)
        text_string(out, value);
    else
        text_format(reason, "environment variable '%s' is not set", name ? name : "");
    free(name);
    return value ? end + 1 : NULL;
}

char *template_expand(const char *pattern, int pid, int number, char **error) {
    struct text out = {0};
    struct text reason = {0};
    const char *c = pattern;
    if (*c == '~')
        text_string(&reason, "the name begins with '~', which the shell did not expand; use $HOME");
    else if (!*c)
        text_string(&reason, "the name is empty");
    while (c && *c && !reason.size) {
        if (*c != '%') {
            text_char(&out, *c++);
            continue;
        }
        switch (c[1]) {
        case 'p':
            text_format(&out, "%d", pid);
            c += 2;
            break;
        case 'n':
            text_format(&out, "%d", number);
            c += 2;
            break;
        case '%':
            text_char(&out, '%');
            c += 2;
            break;
        case 'q':
            c = expand_variable(&out, c + 2, &reason);
            break;
        default:
            text_string(&reason, "a '%' must be followed by p, n, q{VARIABLE} or %");
        }
    }
    if (!reason.size)
        return text_take(&out);
    text_free(&out);
    *error = text_take(&reason);
    return NULL;
}

bool template_has_pid(const char *pattern) {
    for (; *pattern; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'p')
            return true;
        if (pattern[0] == '%' && pattern[1])
            pattern++;
    }
    return false;
}
