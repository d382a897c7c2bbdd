#define _XOPEN_SOURCE 700
#include <time.h>

#include "cli/store_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/vector.h"
#include "cli/words.h"

void store_words_add(struct store_words *words, const char *name, const char *value) {
    struct text text = {0};
    if (!value)
        return;
    text_format(&text, "%s=%s", name, value);
    *vector_push(words->items, words->count) = text_take(&text);
}

void store_words_option(struct store_words *words, const struct arguments *arguments,
                        const char *option, const char *name) {
    store_words_add(words, name, argument_text(arguments, option));
}

int store_words_run(const struct store_words *words, const char *task) {
    char *exporter = words_part("quern-exporter", X_OK);
    if (!exporter)
        return words_fail("quern-exporter is missing; reinstall or rebuild Quern");
    char **all = base_allocate((words->count + 3) * sizeof *all);
    all[0] = base_copy("quern-exporter");
    all[1] = base_copy(task);
    memcpy(all + 2, words->items, words->count * sizeof *all);
    all[words->count + 2] = NULL;
    fflush(NULL);
    execv(exporter, all);
    return words_fail("quern-exporter cannot be started: %s", strerror(errno));
}

// ---- moments -----------------------------------------------------------------------------------

static time_t end_of_day(struct tm day) {
    day.tm_hour = 23;
    day.tm_min = day.tm_sec = 59;
    day.tm_isdst = -1;
    return mktime(&day);
}

// How many days ago a word means; -1: it is no such word.
static int days_ago(const char *text, int today) {
    static const char *const days[] = {"sunday",   "monday", "tuesday", "wednesday",
                                       "thursday", "friday", "saturday"};
    if (strcasecmp(text, "today") == 0)
        return 0;
    if (strcasecmp(text, "yesterday") == 0)
        return 1;
    for (int i = 0; i < 7; i++)
        if (strcasecmp(text, days[i]) == 0)
            return (today - i + 7) % 7;
    return -1;
}

static bool parse_ago(const char *text, time_t now, time_t *moment) {
    char *end;
    long number = strtol(text + 1, &end, 10);
    const char *units = "smhd", *unit = *end ? strchr(units, *end) : NULL;
    static const long seconds[] = {1, 60, 3600, 86400};
    if (number < 0 || number > 1000000 || end == text + 1 || !unit || end[1])
        return false;
    *moment = now - number * seconds[unit - units];
    return true;
}

static bool parse_date(const char *text, time_t *moment) {
    static const char *const formats[] = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct tm parts = {.tm_isdst = -1};
        const char *end = strptime(text, formats[i], &parts);
        if (!end || *end)
            continue;
        *moment = i == 2 ? end_of_day(parts) : mktime(&parts);
        return true;
    }
    return false;
}

bool store_words_moment(const char *text, time_t now, time_t *moment) {
    struct tm today;
    localtime_r(&now, &today);
    int ago = days_ago(text, today.tm_wday);
    *moment = now;
    if (strcasecmp(text, "now") == 0)
        return true;
    if (ago >= 0) {
        today.tm_mday -= ago;
        *moment = end_of_day(today);
    } else if (*text == '-' ? !parse_ago(text, now, moment) : !parse_date(text, moment)) {
        return false;
    }
    if (*moment > now)
        *moment = now;
    return true;
}
