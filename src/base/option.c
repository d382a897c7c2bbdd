#include "base/option.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static size_t index_of(const struct option_values *values, const char *name) {
    size_t i = 0;
    while (i < values->count && strcmp(values->options[i]->name, name) != 0)
        i++;
    assert(i < values->count);
    return i;
}

const char *option_text(const struct option_values *values, const char *name) {
    size_t i = index_of(values, name);
    const struct option_value *value = &values->values[i];
    return value->count ? value->items[value->count - 1] : values->options[i]->initial;
}

bool option_is(const struct option_values *values, const char *name, const char *text) {
    const char *value = option_text(values, name);
    return value && strcmp(value, text) == 0;
}

bool option_yes(const struct option_values *values, const char *name) {
    return option_is(values, name, "yes");
}

long option_number(const struct option_values *values, const char *name) {
    const char *text = option_text(values, name);
    return text ? strtol(text, NULL, 0) : 0;
}

double option_decimal(const struct option_values *values, const char *name) {
    const char *text = option_text(values, name);
    return text ? strtod(text, NULL) : 0;
}

bool option_parse_size(const char *text, bool is_rate, unsigned long long *bytes) {
    static const char letters[] = "KMG";
    char *end;
    errno = 0;
    *bytes = strtoull(text, &end, 10);
    const char *letter = *end ? strchr(letters, toupper((unsigned char)*end)) : NULL;
    unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
    bool fits = errno == 0 && *bytes <= (unsigned long long)LLONG_MAX >> shift;
    *bytes <<= fits ? shift : 0;
    const char *rest = letter ? end + 1 : end;
    return isdigit((unsigned char)*text) && fits &&
           (*rest == 0 || (is_rate && strcmp(rest, "/min") == 0));
}

unsigned long long option_bytes(const struct option_values *values, const char *name) {
    unsigned long long bytes = 0;
    const char *text = option_text(values, name);
    return text && option_parse_size(text, true, &bytes) ? bytes : 0;
}

const struct option_value *option_items(const struct option_values *values, const char *name) {
    return &values->values[index_of(values, name)];
}

size_t option_times(const struct option_values *values, const char *name) {
    return option_items(values, name)->count;
}

bool option_given(const struct option_values *values, const char *name) {
    return option_times(values, name) > 0;
}
