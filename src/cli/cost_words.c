#include "cli/cost_words.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "cli/words.h"

enum { START = 4096 };

bool cost_words_is_one(const char *path) {
    char start[START];
    size_t size = words_start(path, start, sizeof start);
    return size && costs_is_one(start, size);
}

int cost_words_read(struct cost_profile *profile, const char *path) {
    FILE *in = fopen(path, "r");
    if (!in)
        return words_fail("cannot read '%s': %s", path, strerror(errno));
    char *problem = costs_read(profile, in);
    int status = problem ? words_fail("cannot read '%s': %s", path, problem) : WORDS_DONE;
    free(problem);
    fclose(in);
    return status;
}

char *cost_words_newest(void) {
    glob_t found = {0};
    char *path = NULL;
    struct timespec last = {0};
    glob("callgrind.out.*", 0, NULL, &found);
    glob("cachegrind.out.*", GLOB_APPEND, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat st;
        if (stat(found.gl_pathv[i], &st) != 0 ||
            (path && (st.st_mtim.tv_sec < last.tv_sec ||
                      (st.st_mtim.tv_sec == last.tv_sec && st.st_mtim.tv_nsec < last.tv_nsec))))
            continue;
        free(path);
        path = base_copy(found.gl_pathv[i]);
        last = st.st_mtim;
    }
    globfree(&found);
    return path;
}

static int no_event(const struct cost_profile *profile, const char *name, size_t size) {
    struct text known = {0};
    for (unsigned i = 0; i < profile->event_count; i++)
        text_format(&known, "%s%s", i ? ", " : "", profile->events[i]);
    int status = words_fail("unknown event '%.*s'; choose one of %s", (int)size, name, known.bytes);
    text_free(&known);
    return status;
}

static int find_event(const struct cost_profile *profile, const char *name, size_t size) {
    for (unsigned i = 0; i < profile->event_count; i++)
        if (strlen(profile->events[i]) == size && memcmp(profile->events[i], name, size) == 0)
            return (int)i;
    return -1;
}

int cost_words_events(const struct cost_profile *profile, const char *show, const char *sort,
                      struct annotate_options *options) {
    options->show_count = 0;
    for (unsigned i = 0; !show && i < profile->event_count; i++)
        options->show[options->show_count++] = i;
    while (show && *show) {
        size_t size = strcspn(show, ",");
        int event = find_event(profile, show, size);
        if (event < 0)
            return no_event(profile, show, size);
        if (options->show_count < COST_EVENTS)
            options->show[options->show_count++] = (unsigned)event;
        show += size + (show[size] == ',');
    }
    options->sort = options->show_count ? options->show[0] : 0;
    if (sort) {
        size_t size = strcspn(sort, ",:");
        int event = find_event(profile, sort, size);
        if (event < 0)
            return no_event(profile, sort, size);
        options->sort = (unsigned)event;
    }
    return WORDS_DONE;
}
