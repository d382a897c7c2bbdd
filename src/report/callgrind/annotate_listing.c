#include "report/callgrind/annotate_listing.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vector.h"
#include "report/callgrind/annotate_parts.h"

enum { PERCENT_WIDTH = 9 };

// The costs of a function in one of the files that its code is from. Functions of the same name and
// file in several objects are one, with the last object, as in callgrind_annotate.
struct entry {
    uint32_t function;
    const char *file;
    uint64_t values[COST_EVENTS];
};

// Lines of a file with their costs, and which of these were annotated.
struct listing {
    FILE *out;
    const struct cost_profile *profile;
    const struct annotate_listing *wanted;
    struct annotate_view view; // for sources
    const uint64_t *totals;    // the file's own, which may count more than its lines
    char folder[PATH_MAX];     // the one we are in, with a slash: not shown before files
    size_t folder_size;
    struct entry *entries;
    size_t count, shown;
    uint64_t annotated[COST_EVENTS];
    bool has_annotated;
};

// ---- columns -----------------------------------------------------------------------------------

static void add_cell(struct text *text, const struct listing *listing, unsigned event,
                     uint64_t value) {
    uint64_t total = listing->totals[event];
    bool is_negative = (int64_t)value < 0; // in a difference of two profiles
    if (is_negative)
        text_char(text, '-');
    if (value)
        text_commas(text, is_negative ? -value : value);
    else
        text_char(text, '.');
    if (!listing->wanted->options->percents)
        return;
    double percent = total ? 100.0 * (double)(int64_t)value / (double)(int64_t)total : 0;
    if (!value)
        text_format(text, "%*s", PERCENT_WIDTH, "");
    else
        text_format(text, percent > 99.99 ? " (%5.1f%%)" : " (%5.2f%%)", percent);
}

static void widen(struct listing *listing, const uint64_t *values) {
    const struct annotate_options *options = listing->wanted->options;
    for (unsigned i = 0; i < options->show_count; i++) {
        struct text text = {0};
        add_cell(&text, listing, options->show[i], values[options->show[i]]);
        if ((int)text.size > listing->view.widths[i])
            listing->view.widths[i] = (int)text.size;
        text_free(&text);
    }
}

static void start_columns(struct listing *listing) {
    const struct annotate_options *options = listing->wanted->options;
    for (unsigned i = 0; i < options->show_count; i++)
        listing->view.widths[i] = (int)strlen(listing->profile->events[options->show[i]]);
}

static void print_cells(struct listing *listing, const uint64_t *values) {
    const struct annotate_options *options = listing->wanted->options;
    for (unsigned i = 0; i < options->show_count; i++) {
        struct text text = {0};
        add_cell(&text, listing, options->show[i], values[options->show[i]]);
        fprintf(listing->out, "%*s ", listing->view.widths[i], text.bytes);
        text_free(&text);
    }
}

static void print_headings(struct listing *listing, const char *rest) {
    const struct annotate_options *options = listing->wanted->options;
    for (unsigned i = 0; i < options->show_count; i++)
        fprintf(listing->out, "%-*s ", listing->view.widths[i],
                listing->profile->events[options->show[i]]);
    fprintf(listing->out, "%s\n", rest);
}

// ---- the head ----------------------------------------------------------------------------------

static void print_field(struct listing *listing, const char *name, const char *value) {
    if (!value)
        return;
    fputs(name, listing->out);
    annotate_name(listing->out, value);
    fputc('\n', listing->out);
}

static void print_events(struct listing *listing, const char *name, const unsigned *events,
                         unsigned count) {
    fputs(name, listing->out);
    for (unsigned i = 0; i < count; i++)
        fprintf(listing->out, "%s%s", i ? " " : "", listing->profile->events[events[i]]);
    fputc('\n', listing->out);
}

static void print_thresholds(struct listing *listing) {
    const struct annotate_listing *wanted = listing->wanted;
    fprintf(listing->out, wanted->is_cachegrind ? "Threshold:        " : "Thresholds:       ");
    for (unsigned i = 0; i < (wanted->is_cachegrind ? 1 : wanted->sort_count); i++)
        fprintf(listing->out, "%s%g", i ? " " : "", wanted->thresholds[i]);
    fputc('\n', listing->out);
}

static bool ends_in_slash(const char *path) {
    return *path && path[strlen(path) - 1] == '/';
}

static void print_lists(struct listing *listing) {
    const struct annotate_options *options = listing->wanted->options;
    fputs("Include dirs:     ", listing->out);
    for (size_t i = 0; i < options->directory_count; i++)
        fprintf(listing->out, "%s%s%s", i ? "\n                  " : "", options->directories[i],
                ends_in_slash(options->directories[i]) ? "" : "/");
    fputs("\nUser annotated:   ", listing->out);
    for (size_t i = 0; i < listing->wanted->source_count; i++)
        fprintf(listing->out, "%s%s", i ? "\n                  " : "", listing->wanted->sources[i]);
    fprintf(listing->out, "\nAuto-annotation:  %s\n\n", options->sources ? "on" : "off");
}

static void print_head(struct listing *listing) {
    const struct cost_profile *profile = listing->profile;
    unsigned all[COST_EVENTS];
    for (unsigned i = 0; i < profile->event_count; i++)
        all[i] = i;
    annotate_rule(listing->out);
    if (!listing->wanted->is_cachegrind) {
        fputs("Profile data file '", listing->out);
        annotate_name(listing->out, listing->wanted->path);
        fprintf(listing->out, "' (creator: %s)\n", profile->creator ? profile->creator : "unknown");
        annotate_rule(listing->out);
    }
    for (unsigned i = 0; i < COST_DESCRIPTIONS; i++)
        if (profile->descriptions[i])
            print_field(listing, "", profile->descriptions[i]);
    if (listing->wanted->is_cachegrind) {
        print_field(listing, "Command:          ", profile->command);
        print_field(listing, "Data file:        ", listing->wanted->path);
    } else {
        fputs("Profiled target:  ", listing->out);
        annotate_name(listing->out, profile->command ? profile->command : "");
        if (profile->process)
            fprintf(listing->out, " (PID %s, part %s)", profile->process,
                    profile->part ? profile->part : "1");
        fputc('\n', listing->out);
    }
    print_events(listing, "Events recorded:  ", all, profile->event_count);
    print_events(listing, "Events shown:     ", listing->wanted->options->show,
                 listing->wanted->options->show_count);
    print_events(listing, "Event sort order: ", listing->wanted->sort, listing->wanted->sort_count);
    print_thresholds(listing);
    print_lists(listing);
}

static void print_totals(struct listing *listing, const uint64_t *values, const char *name) {
    start_columns(listing);
    widen(listing, values);
    annotate_rule(listing->out);
    print_headings(listing, "");
    annotate_rule(listing->out);
    print_cells(listing, values);
    fprintf(listing->out, " %s\n\n", name);
}

// ---- functions ---------------------------------------------------------------------------------

static const struct annotate_listing *sorting; // for compare_entries

static int compare_entries(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    for (unsigned i = 0; i < sorting->sort_count; i++) {
        int64_t x = (int64_t)a->values[sorting->sort[i]];
        int64_t y = (int64_t)b->values[sorting->sort[i]];
        // A difference may be below zero: what changed most comes first.
        if (llabs(x) != llabs(y))
            return llabs(x) < llabs(y) ? 1 : -1;
    }
    return a->function != b->function ? (a->function > b->function) - (a->function < b->function)
                                      : strcmp(a->file, b->file);
}

static void add_values(uint64_t *to, const uint64_t *values, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        to[i] += values[i];
}

static struct entry *find_entry(struct listing *listing, struct map *map, uint32_t function,
                                const char *file) {
    const struct cost_function *functions = listing->profile->functions;
    const char *name = functions[function].name;
    uint64_t hash = hash_add(hash_add(0, (uint64_t)file), (uint64_t)name);
    struct map_walk walk = map_walk(hash);
    for (uint32_t number; (number = map_next(map, &walk)) != MAP_NONE;)
        if (functions[listing->entries[number].function].name == name &&
            listing->entries[number].file == file) {
            listing->entries[number].function = function;
            return &listing->entries[number];
        }
    map_add(map, hash);
    struct entry *entry = vector_push(listing->entries, listing->count);
    *entry = (struct entry){function, file, {0}};
    return entry;
}

// Inclusive costs are the own ones and those of all calls, of all parts of the function. Recursion
// has names of its own in the file.
static void make_entries(struct listing *listing) {
    const struct cost_profile *profile = listing->profile;
    const struct cost_function *functions = profile->functions;
    bool is_inclusive = listing->wanted->options->inclusive;
    struct map map = {0};
    for (size_t i = 0; i < profile->line_count; i++) {
        const struct cost_line *line = &profile->lines[i];
        const char *file = is_inclusive ? functions[line->function].file : line->file;
        struct entry *entry = find_entry(listing, &map, line->function, file);
        add_values(entry->values, cost_values(profile, line->own), profile->event_count);
    }
    for (size_t i = 0; i < profile->call_count && is_inclusive; i++) {
        const struct cost_call *call = &profile->calls[i];
        struct entry *entry = find_entry(listing, &map, call->caller, functions[call->caller].file);
        add_values(entry->values, cost_values(profile, call->inclusive), profile->event_count);
    }
    map_free(&map);
}

static bool has_share(const struct listing *listing, const struct entry *entry) {
    const struct annotate_listing *wanted = listing->wanted;
    double total = (double)(int64_t)listing->totals[wanted->sort[0]];
    double value = (double)llabs((int64_t)entry->values[wanted->sort[0]]);
    return value > 0 && value * 100 >= total * wanted->thresholds[0];
}

// Whether what is shown so far is enough: own costs add up to the percentages of all events, or, as
// inclusive costs do not add up, the last function has what is left of the first event at most.
static bool is_enough(const struct listing *listing, const uint64_t *sums) {
    const struct annotate_listing *wanted = listing->wanted;
    const uint64_t *totals = listing->totals;
    if (wanted->options->inclusive) {
        unsigned event = wanted->sort[0];
        double left = (double)totals[event] * (100 - wanted->thresholds[0]) / 100;
        return listing->shown && (double)listing->entries[listing->shown - 1].values[event] <= left;
    }
    for (unsigned i = 0; i < wanted->sort_count; i++)
        if ((double)sums[wanted->sort[i]] * 100 <
            (double)totals[wanted->sort[i]] * wanted->thresholds[i])
            return false;
    return true;
}

static void choose_entries(struct listing *listing) {
    uint64_t sums[COST_EVENTS] = {0};
    for (; listing->shown < listing->count; listing->shown++) {
        const struct entry *entry = &listing->entries[listing->shown];
        if (listing->wanted->is_cachegrind ? !has_share(listing, entry) : is_enough(listing, sums))
            break;
        add_values(sums, entry->values, listing->profile->event_count);
    }
}

static void print_object(struct listing *listing, uint32_t function, const char *file) {
    const struct cost_function *f = &listing->profile->functions[function];
    // A part of the function from another file stands without its object, as in callgrind_annotate.
    if (!*f->object || f->file != file || listing->wanted->is_cachegrind)
        return;
    fputs(" [", listing->out);
    annotate_name(listing->out, f->object);
    fputc(']', listing->out);
}

static void print_file(struct listing *listing, const char *file) {
    bool is_below = strncmp(file, listing->folder, listing->folder_size) == 0;
    annotate_name(listing->out, file + (is_below ? listing->folder_size : 0));
}

static void print_entry_name(struct listing *listing, uint32_t function, const char *file) {
    print_file(listing, file);
    fputc(':', listing->out);
    annotate_name(listing->out, listing->profile->functions[function].name);
}

// A function at the other end of calls.
struct end {
    struct entry entry; // first: ends are sorted as entries are
    uint64_t count;
};

static void print_end(struct listing *listing, const struct end *end, const char *mark) {
    const struct entry *entry = &end->entry;
    print_cells(listing, entry->values);
    fputs(mark, listing->out);
    print_entry_name(listing, entry->function, entry->file);
    fprintf(listing->out, " (%" PRIu64 "x)", end->count);
    print_object(listing, entry->function, entry->file);
    fputc('\n', listing->out);
}

// Calls from or to the function of an entry, one row for each function at the other end.
static void print_ends(struct listing *listing, const struct entry *entry, bool callers) {
    const struct cost_profile *profile = listing->profile;
    const char *name = profile->functions[entry->function].name;
    struct end *ends = NULL;
    size_t count = 0;
    if (callers && entry->file != profile->functions[entry->function].file)
        return;
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        uint32_t other = callers ? call->caller : call->callee;
        const char *file = callers ? call->file : profile->functions[other].file;
        size_t at = 0;
        uint32_t here = callers ? call->callee : call->caller;
        const char *place = callers ? profile->functions[here].file : call->file;
        if (profile->functions[here].name != name || place != entry->file)
            continue;
        while (at < count && (ends[at].entry.function != other || ends[at].entry.file != file))
            at++;
        if (at == count)
            *vector_push(ends, count) = (struct end){.entry = {other, file, {0}}};
        add_values(ends[at].entry.values, cost_values(profile, call->inclusive),
                   profile->event_count);
        ends[at].count += call->count;
    }
    if (count)
        qsort(ends, count, sizeof *ends, compare_entries);
    for (size_t i = 0; i < count; i++)
        print_end(listing, &ends[i], callers ? " < " : " >   ");
    free(ends);
}

static void print_functions(struct listing *listing) {
    enum annotate_tree tree = listing->wanted->options->tree;
    start_columns(listing);
    for (size_t i = 0; i < listing->count; i++)
        widen(listing, listing->entries[i].values);
    annotate_rule(listing->out);
    print_headings(listing, " file:function");
    annotate_rule(listing->out);
    if (tree != TREE_NONE)
        fputc('\n', listing->out);
    for (size_t i = 0; i < listing->shown; i++) {
        const struct entry *entry = &listing->entries[i];
        if (tree == TREE_CALLERS || tree == TREE_BOTH)
            print_ends(listing, entry, true);
        print_cells(listing, entry->values);
        fputs(tree != TREE_NONE ? " *  " : " ", listing->out);
        print_entry_name(listing, entry->function, entry->file);
        print_object(listing, entry->function, entry->file);
        fputc('\n', listing->out);
        if (tree == TREE_CALLEES || tree == TREE_BOTH)
            print_ends(listing, entry, false);
        if (tree != TREE_NONE)
            fputc('\n', listing->out);
    }
    if (tree == TREE_NONE)
        fputc('\n', listing->out);
}

// ---- sources -----------------------------------------------------------------------------------

struct line_costs {
    uint64_t values[COST_EVENTS];
    bool is_known;
};

static struct line_costs *gather_lines(const struct listing *listing, const char *path,
                                       size_t *count) {
    enum { LAST_LINE = 10000000 };
    const struct cost_profile *profile = listing->profile;
    *count = 1;
    for (size_t i = 0; i < profile->line_count; i++)
        if (strcmp(profile->lines[i].file, path) == 0 && profile->lines[i].line >= *count &&
            profile->lines[i].line < LAST_LINE)
            *count = profile->lines[i].line + 1;
    struct line_costs *lines = base_allocate(*count * sizeof *lines);
    memset(lines, 0, *count * sizeof *lines);
    for (size_t i = 0; i < profile->line_count; i++) {
        const struct cost_line *line = &profile->lines[i];
        if (line->line >= *count || strcmp(line->file, path) != 0)
            continue;
        lines[line->line].is_known = true;
        add_values(lines[line->line].values, cost_values(profile, line->own), profile->event_count);
    }
    return lines;
}

static void print_calls(struct listing *listing, const char *path, size_t line) {
    const struct cost_profile *profile = listing->profile;
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        if (call->line != line || strcmp(call->file, path) != 0)
            continue;
        print_cells(listing, cost_values(profile, call->inclusive));
        fputs(" => ", listing->out);
        print_entry_name(listing, call->callee, profile->functions[call->callee].file);
        fprintf(listing->out, " (%" PRIu64 "x)\n", call->count);
    }
}

static bool is_near(const struct line_costs *lines, size_t count, size_t line, unsigned context) {
    size_t first = line > context ? line - context : 1;
    for (size_t i = first; i <= line + context && i < count; i++)
        if (lines[i].is_known)
            return true;
    return false;
}

static void print_gap(struct listing *listing, size_t line) {
    fprintf(listing->out, "-- line %zu ----------------------------------------\n", line);
}

static void print_lines(struct listing *listing, const char *path, FILE *file,
                        const struct line_costs *lines, size_t count) {
    static const uint64_t none[COST_EVENTS];
    char *text = NULL;
    size_t room = 0, line = 1;
    bool was_near = true;
    for (ssize_t size; (size = getline(&text, &room, file)) >= 0; line++) {
        bool is_shown = is_near(lines, count, line, listing->wanted->options->context);
        if (is_shown != was_near && (line > 1 || is_shown))
            print_gap(listing, line - !is_shown);
        was_near = is_shown;
        if (!is_shown)
            continue;
        if (size && text[size - 1] == '\n')
            text[size - 1] = 0;
        print_cells(listing, line < count ? lines[line].values : none);
        fputc(' ', listing->out);
        annotate_name(listing->out, text);
        fputc('\n', listing->out);
        if (line < count && lines[line].is_known)
            print_calls(listing, path, line);
    }
    free(text);
}

// False: the file is not there.
static bool print_source(struct listing *listing, const char *path, bool is_asked) {
    FILE *file = annotate_open_source(&listing->view, path);
    if (!file)
        return false;
    size_t count;
    struct line_costs *lines = gather_lines(listing, path, &count);
    annotate_rule(listing->out);
    fprintf(listing->out, "-- %s-annotated source: ", is_asked ? "User" : "Auto");
    print_file(listing, path);
    fputc('\n', listing->out);
    annotate_rule(listing->out);
    if (count == 1) {
        fputs("  No information has been collected for ", listing->out);
        print_file(listing, path);
        fputs("\n\n", listing->out);
        fclose(file);
        free(lines);
        return true;
    }
    start_columns(listing);
    for (size_t i = 1; i < count; i++) {
        if (!lines[i].is_known)
            continue;
        widen(listing, lines[i].values);
        add_values(listing->annotated, lines[i].values, listing->profile->event_count);
    }
    listing->has_annotated = true;
    print_headings(listing, "");
    fputc('\n', listing->out);
    print_lines(listing, path, file, lines, count);
    fputc('\n', listing->out);
    fclose(file);
    free(lines);
    return true;
}

static int compare_paths(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void print_missing(struct listing *listing, const char **paths, size_t count) {
    if (!count)
        return;
    qsort(paths, count, sizeof *paths, compare_paths);
    annotate_rule(listing->out);
    fputs("The following files chosen for auto-annotation could not be found:\n", listing->out);
    annotate_rule(listing->out);
    for (size_t i = 0; i < count; i++) {
        fputs("  ", listing->out);
        annotate_name(listing->out, paths[i]);
        fputc('\n', listing->out);
    }
    fputc('\n', listing->out);
}

static void print_sources(struct listing *listing) {
    const char **done = NULL, **missing = NULL;
    size_t done_count = 0, missing_count = 0;
    for (size_t i = 0; i < listing->wanted->source_count; i++) {
        const char *path = listing->wanted->sources[i];
        *vector_push(done, done_count) = path;
        if (!print_source(listing, path, true))
            *vector_push(missing, missing_count) = path;
    }
    for (size_t i = 0; i < listing->shown && listing->wanted->options->sources; i++) {
        const char *path = listing->entries[i].file;
        bool is_done = strcmp(path, "???") == 0;
        for (size_t j = 0; j < done_count && !is_done; j++)
            is_done = strcmp(done[j], path) == 0;
        if (is_done)
            continue;
        *vector_push(done, done_count) = path;
        if (!print_source(listing, path, false))
            *vector_push(missing, missing_count) = path;
    }
    print_missing(listing, missing, missing_count);
    if (listing->has_annotated)
        print_totals(listing, listing->annotated, "events annotated");
    free(done);
    free(missing);
}

void annotate_list(FILE *out, const struct cost_profile *profile,
                   const struct annotate_listing *wanted) {
    struct listing listing = {.out = out,
                              .profile = profile,
                              .wanted = wanted,
                              .view = {.out = out, .profile = profile, .options = wanted->options}};
    listing.totals = profile->has_summary ? profile->summary : profile->totals;
    if (!wanted->is_cachegrind && getcwd(listing.folder, sizeof listing.folder - 1)) {
        strcat(listing.folder, "/");
        listing.folder_size = strlen(listing.folder);
    }
    make_entries(&listing);
    sorting = wanted;
    if (listing.count)
        qsort(listing.entries, listing.count, sizeof *listing.entries, compare_entries);
    choose_entries(&listing);
    print_head(&listing);
    print_totals(&listing, listing.totals, "PROGRAM TOTALS");
    print_functions(&listing);
    print_sources(&listing);
    free(listing.entries);
}
