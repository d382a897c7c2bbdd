#include "cli/filter.h"

#include <stdlib.h>
#include <string.h>

#include "cli/words.h"

// A number of seconds in nanoseconds.
static bool parse_seconds(const char *text, const char *end, uint64_t *value) {
    char *stop;
    double seconds = strtod(text, &stop);
    if (stop != end || stop == text || !(seconds >= 0 && seconds < 1e9))
        return false;
    *value = (uint64_t)(seconds * 1e9 + 0.5);
    return true;
}

static bool parse_bytes(const char *text, const char *end, uint64_t *value) {
    char *stop;
    *value = strtoull(text, &stop, 10);
    return stop == end && *text >= '0' && *text <= '9' && *value <= HEAP_SIZE_MAX;
}

// LEAST-MOST. Both are in the range; *to is the first value behind it.
static bool parse_range(const char *text,
                        bool (*parse)(const char *text, const char *end, uint64_t *value),
                        uint64_t *from, uint64_t *to) {
    const char *dash = text ? strchr(text, '-') : NULL;
    if (!dash || !(dash[1] || dash > text))
        return false;
    if (dash > text && !parse(text, dash, from))
        return false;
    if (dash[1] && !parse(dash + 1, dash + strlen(dash), to))
        return false;
    *to += dash[1] != 0;
    return *from < *to;
}

static int take_time(const struct arguments *arguments, const char *name, uint64_t *time) {
    const char *value = argument_text(arguments, name);
    if (!value || parse_seconds(value, value + strlen(value), time))
        return WORDS_DONE;
    return argument_refuse(arguments, name, "give a time in seconds, such as 1.5");
}

int filter_arguments(const struct arguments *arguments, struct heap_filter *filter, bool *given) {
    static const char *const names[] = {"from", "to", "size", "lifetime", "function", "library"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        *given |= argument_given(arguments, names[i]);
    if (take_time(arguments, "from", &filter->from) || take_time(arguments, "to", &filter->to))
        return WORDS_FAILED;
    const char *size = argument_text(arguments, "size");
    if (size && !parse_range(size, parse_bytes, &filter->size_from, &filter->size_to))
        return argument_refuse(arguments, "size", "give a range of bytes, such as 16-64 or 1024-");
    const char *lifetime = argument_text(arguments, "lifetime");
    if (lifetime && !parse_range(lifetime, parse_seconds, &filter->life_from, &filter->life_to))
        return argument_refuse(arguments, "lifetime",
                               "give a range of seconds, such as 0.5-2 or 10-");
    filter->function = argument_text(arguments, "function");
    filter->library = argument_text(arguments, "library");
    return WORDS_DONE;
}
