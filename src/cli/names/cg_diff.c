// cg_diff: the difference of two profiles as a cachegrind.out, which may have costs below zero.
#include <inttypes.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/option_table.h"
#include "base/text.h"
#include "base/vector.h"
#include "cli/arguments.h"
#include "cli/cost_words.h"
#include "cli/names/parts.h"
#include "cli/words.h"

// ---- s/OLD/NEW/ --------------------------------------------------------------------------------

enum { GROUPS = 10 };

struct change {
    regex_t pattern;
    char *replacement;
    bool is_given, everywhere;
};

// The text up to the next separator, which a backslash makes plain; NULL: there is none.
static char *take_part(const char **at, char separator) {
    struct text part = {0};
    text_string(&part, "");
    for (; **at && **at != separator; ++*at) {
        if (**at == '\\' && (*at)[1] == separator)
            ++*at;
        else if (**at == '\\' && (*at)[1])
            text_char(&part, *(*at)++);
        text_char(&part, **at);
    }
    if (!**at) {
        text_free(&part);
        return NULL;
    }
    ++*at;
    return text_take(&part);
}

static int read_change(const struct arguments *arguments, const char *name, struct change *change) {
    const char *word = argument_text(arguments, name), *at = word ? word + 2 : NULL;
    const char *advice = "give a substitution such as s/prog[0-9]/prog/, with g or i behind it";
    if (!word)
        return WORDS_DONE;
    char *pattern = word[0] == 's' && word[1] ? take_part(&at, word[1]) : NULL;
    change->replacement = pattern ? take_part(&at, word[1]) : NULL;
    bool is_fine = change->replacement && strspn(at, "gi") == strlen(at);
    change->everywhere = is_fine && strchr(at, 'g');
    int flags = REG_EXTENDED | (is_fine && strchr(at, 'i') ? REG_ICASE : 0);
    change->is_given = is_fine && regcomp(&change->pattern, pattern, flags) == 0;
    free(pattern);
    return change->is_given ? WORDS_DONE : argument_refuse(arguments, name, advice);
}

static void free_change(struct change *change) {
    if (change->is_given)
        regfree(&change->pattern);
    free(change->replacement);
}

// The replacement with \1 or $1 and so on filled in.
static void add_replacement(struct text *out, const struct change *change, const char *from,
                            const regmatch_t groups[GROUPS]) {
    for (const char *at = change->replacement; *at; at++) {
        bool is_group = (*at == '\\' || *at == '$') && at[1] >= '0' && at[1] <= '9';
        if (!is_group) {
            at += *at == '\\' && at[1];
            text_char(out, *at);
            continue;
        }
        const regmatch_t *group = &groups[*++at - '0'];
        if (group->rm_so >= 0)
            text_format(out, "%.*s", (int)(group->rm_eo - group->rm_so), from + group->rm_so);
    }
}

// The changed name; to be freed.
static char *apply_change(const struct change *change, const char *name) {
    struct text out = {0};
    regmatch_t groups[GROUPS];
    text_string(&out, "");
    while (change->is_given && *name && regexec(&change->pattern, name, GROUPS, groups, 0) == 0) {
        text_format(&out, "%.*s", (int)groups[0].rm_so, name);
        add_replacement(&out, change, name, groups);
        name += groups[0].rm_eo;
        if (!change->everywhere)
            break;
        if (groups[0].rm_eo == groups[0].rm_so && *name)
            text_char(&out, *name++);
    }
    text_string(&out, name);
    return text_take(&out);
}

// ---- the difference ----------------------------------------------------------------------------

struct row {
    char *file, *function;
    int64_t values[COST_EVENTS];
};

struct difference {
    struct change changes[2]; // of files, of functions
    struct cost_profile *profiles[2];
    struct row *rows;
    size_t count;
    struct map map;
};

static struct row *find_row(struct difference *difference, char *file, char *function) {
    uint64_t hash = hash_bytes(HASH_TEXT_START, file, strlen(file) + 1);
    hash = hash_bytes(hash, function, strlen(function));
    struct map_walk walk = map_walk(hash);
    for (uint32_t number; (number = map_next(&difference->map, &walk)) != MAP_NONE;) {
        struct row *row = &difference->rows[number];
        if (strcmp(row->file, file) == 0 && strcmp(row->function, function) == 0) {
            free(file);
            free(function);
            return row;
        }
    }
    map_add(&difference->map, hash);
    struct row *row = vector_push(difference->rows, difference->count);
    *row = (struct row){.file = file, .function = function};
    return row;
}

static void add_profile(struct difference *difference, unsigned which) {
    const struct cost_profile *profile = difference->profiles[which];
    for (size_t i = 0; i < profile->line_count; i++) {
        const struct cost_line *line = &profile->lines[i];
        const uint64_t *values = cost_values(profile, line->own);
        struct row *row = find_row(
            difference, apply_change(&difference->changes[0], line->file),
            apply_change(&difference->changes[1], profile->functions[line->function].name));
        for (unsigned e = 0; e < profile->event_count; e++)
            row->values[e] += which ? (int64_t)values[e] : -(int64_t)values[e];
    }
}

static int compare_rows(const void *left, const void *right) {
    const struct row *a = left, *b = right;
    int order = strcmp(a->file, b->file);
    return order ? order : strcmp(a->function, b->function);
}

static void print_rows(const struct difference *difference, FILE *out) {
    unsigned events = difference->profiles[0]->event_count;
    int64_t sums[COST_EVENTS] = {0};
    for (size_t i = 0; i < difference->count; i++) {
        const struct row *row = &difference->rows[i];
        if (!i || strcmp(row[-1].file, row->file) != 0)
            fprintf(out, "fl=%s\n", row->file);
        fprintf(out, "fn=%s\n0", row->function);
        for (unsigned e = 0; e < events; e++) {
            fprintf(out, " %" PRId64, row->values[e]);
            sums[e] += row->values[e];
        }
        fputc('\n', out);
    }
    fputs("summary:", out);
    for (unsigned e = 0; e < events; e++)
        fprintf(out, " %" PRId64, sums[e]);
    fputc('\n', out);
}

static void print_difference(struct difference *difference, const char *const *paths, FILE *out) {
    const struct cost_profile *const *profiles =
        (const struct cost_profile *const *)difference->profiles;
    fprintf(out, "desc: Files compared:   %s; %s\ncmd:  %s; %s\nevents:", paths[0], paths[1],
            profiles[0]->command ? profiles[0]->command : "",
            profiles[1]->command ? profiles[1]->command : "");
    for (unsigned e = 0; e < profiles[0]->event_count; e++)
        fprintf(out, " %s", profiles[0]->events[e]);
    fputc('\n', out);
    add_profile(difference, 0);
    add_profile(difference, 1);
    if (difference->count)
        qsort(difference->rows, difference->count, sizeof *difference->rows, compare_rows);
    print_rows(difference, out);
}

static bool have_same_events(const struct cost_profile *a, const struct cost_profile *b) {
    bool is_same = a->event_count == b->event_count;
    for (unsigned e = 0; e < a->event_count && is_same; e++)
        is_same = strcmp(a->events[e], b->events[e]) == 0;
    return is_same;
}

int cg_diff_write(const struct arguments *arguments, FILE *out) {
    const char *const *paths = arguments->operands;
    struct difference difference = {.profiles = {costs_new(), costs_new()}};
    int status = WORDS_DONE;
    if (arguments->operand_count < 2)
        status = help_usage_error(arguments->verb);
    if (!status)
        status = read_change(arguments, "mod-filename", &difference.changes[0]);
    if (!status)
        status = read_change(arguments, "mod-funcname", &difference.changes[1]);
    for (unsigned i = 0; i < 2 && !status; i++)
        status = cost_words_read(difference.profiles[i], paths[i]);
    if (!status && !have_same_events(difference.profiles[0], difference.profiles[1]))
        status = words_fail("'%s' and '%s' have different events", paths[0], paths[1]);
    if (!status)
        print_difference(&difference, paths, out);
    for (size_t i = 0; i < difference.count; i++) {
        free(difference.rows[i].file);
        free(difference.rows[i].function);
    }
    free(difference.rows);
    map_free(&difference.map);
    for (unsigned i = 0; i < 2; i++) {
        free_change(&difference.changes[i]);
        costs_free(difference.profiles[i]);
    }
    return status;
}

static int run_cg_diff(const struct arguments *arguments) {
    int status = cg_diff_write(arguments, stdout);
    return status ? status : words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
}

static const struct option options[] = {
    {STRING("mod-filename", "s/OLD/NEW/", NULL), .help = "change names of files first"},
    {STRING("mod-funcname", "s/OLD/NEW/", NULL), .help = "change names of functions first"},
    {0},
};

const struct verb verb_cg_diff = {
    .name = "cg_diff",
    .usage = "[options] FILE FILE",
    .help = "write the difference of two profiles, as cg_diff does",
    .description = "Both FILEs are cachegrind.out files with the same events. The difference is "
                   "written as one more, for cg_annotate. quern diff shows it to people.",
    .options = options,
    .operands_least = 2,
    .run = run_cg_diff,
};
