// quern export FILE --as FORMAT: writes a recording in the format of another program.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cost_words.h"
#include "cli/stack_words.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "report/callgrind/cost_tree.h"
#include "report/flame/flamegraph.h"
#include "report/flame/folded.h"
#include "report/heap/export.h"
#include "report/massif/folded.h"
#include "report/shared/tree_out.h"
#include "view/html.h"
#include "view/page.h"

struct request {
    const char *path, *out;
    const char *more[HTML_FILES]; // beside the first, for a page
    size_t more_count;
    const struct heap_format *format;
    const struct heap_weight *weight; // NULL: not given
    struct heap_filter filter;
    bool is_filtered;
    const char *by; // what it was given as, or an event of costs
};

static void list_formats(struct text *text) {
    for (size_t i = 0; i < heap_format_count; i++)
        text_format(text, "%s%s", i ? "|" : "", heap_formats[i].name);
}

static int usage(FILE *out, int status) {
    struct text formats = {0}, weights = {0};
    list_formats(&formats);
    words_list_weights(&weights);
    fprintf(
        out,
        "usage: quern export FILE --as %s\n"
        "                    [--by %s] [-o OUT] [options]\n\n"
        "FILE is a recording of --tool=heap, or, as collapsed by peak, a massif.out, or, as\n"
        "collapsed, flamegraph, speedscope or pprof, a callgrind.out, a cachegrind.out, the\n"
        "stacks of --tool=flame or anyone's collapsed stacks; as html, any of these and more, up\n"
        "to four FILEs. What is written goes to OUT, or to standard output.\n\n"
        "  --as FORMAT:\n",
        formats.bytes, weights.bytes);
    for (size_t i = 0; i < heap_format_count; i++)
        fprintf(out, "    %-14s %s\n", heap_formats[i].name, heap_formats[i].help);
    fputs("\n  --by WEIGHT, for collapsed, flamegraph, speedscope and pprof [peak]:\n", out);
    for (size_t i = 0; i < heap_weight_count; i++)
        fprintf(out, "    %-11s %s\n", heap_weights[i].name, heap_weights[i].help);
    fputs("  --by EVENT, of costs [the first]\n", out);
    fprintf(out, "\n  Of a recording, a part:\n%s", words_filter_help);
    fputs("\nStatus 2: FILE is cut off or damaged, and what it holds was written.\n", out);
    text_free(&formats);
    text_free(&weights);
    return status;
}

// ---- words ----

static int take_format(struct request *request, const char *value) {
    for (size_t i = 0; value && i < heap_format_count; i++) {
        if (strcmp(heap_formats[i].name, value) == 0) {
            request->format = &heap_formats[i];
            return WORDS_DONE;
        }
    }
    return words_refuse("format", value, list_formats);
}

static int take_output(struct request *request, const char *value) {
    request->out = value;
    return value && *value ? WORDS_DONE : words_fail("no name after -o");
}

static int take_path(struct request *request, const char *word) {
    if (word[0] == '-')
        return words_fail("unknown option '%s'; quern export --help lists them", word);
    if (!request->path) {
        request->path = word;
        return WORDS_DONE;
    }
    if (request->more_count + 1 == HTML_FILES)
        return words_fail("at most %d files are on a page", HTML_FILES);
    request->more[request->more_count++] = word;
    return WORDS_DONE;
}

static int take_by(struct request *request, const char *value) {
    request->by = value;
    return value ? WORDS_DONE : words_weight(NULL, &request->weight);
}

static int take_words(struct request *request, char **words) {
    int status = WORDS_DONE;
    for (char **word = words; *word && !status; word++) {
        const char *value;
        if (words_value(&word, "--as", &value))
            status = take_format(request, value);
        else if (words_value(&word, "--by", &value))
            status = take_by(request, value);
        else if (words_value(&word, "-o", &value))
            status = take_output(request, value);
        else if (words_filter(&word, &request->filter, &status))
            request->is_filtered = true;
        else
            status = take_path(request, *word);
    }
    return status;
}

// ---- recordings ----

static int export_recording(const struct request *request) {
    struct massif *massif = NULL;
    struct heap_sink sink = {0};
    struct heap_events *events = NULL;
    if (request->format->needs == NEEDS_EVENTS) {
        events = heap_events_new();
        heap_events_sink(events, &sink);
    }
    if (request->format->needs == NEEDS_MASSIF) {
        massif = massif_new(&(struct massif_options){.time_unit = MASSIF_MILLISECONDS,
                                                     .heap_admin = 8,
                                                     .max_snapshots = 100,
                                                     .detailed_freq = 10,
                                                     .peak_inaccuracy = 1});
        massif_sink(massif, &sink);
    }
    struct heap_file file;
    int status =
        words_recording(request->path, &file, request->is_filtered ? &request->filter : NULL, &sink,
                        massif || events ? 1 : 0);
    if (status != WORDS_FAILED) {
        FILE *out = words_output(request->out, request->path);
        if (out)
            request->format->write(out, &(struct heap_export){.file = &file,
                                                              .weight = request->weight,
                                                              .massif = massif,
                                                              .events = events});
        if (!out || !words_close(out, request->out))
            status = WORDS_FAILED;
        heap_file_free(&file);
    }
    if (massif)
        massif_free(massif);
    if (events)
        heap_events_free(events);
    return status;
}

// ---- massif.out ----

static int export_massif(const struct request *request, int fd) {
    if (strcmp(request->format->name, "collapsed") != 0 || request->weight != &heap_weights[0] ||
        request->is_filtered)
        return words_fail("'%s' is a massif.out, which can be exported as collapsed by peak only",
                          request->path);
    FILE *in = fdopen(dup(fd), "r");
    if (!in)
        return words_fail("cannot read '%s': %s", request->path, strerror(errno));
    struct massif_file file;
    int status = WORDS_DONE;
    char *problem = massif_file_read(in, &file);
    FILE *out = problem ? NULL : words_output(request->out, request->path);
    if (problem)
        status = words_fail("cannot read '%s': %s", request->path, problem);
    else if (out && !massif_folded(out, &file))
        status = words_fail("'%s' has no detailed snapshot", request->path);
    if (!problem && (!out || !words_close(out, request->out)))
        status = WORDS_FAILED;
    free(problem);
    massif_file_free(&file);
    fclose(in);
    return status;
}

// ---- callgrind.out, cachegrind.out ----

static void write_costs(FILE *out, const struct request *request,
                        const struct cost_profile *profile, unsigned event) {
    if (strcmp(request->format->name, "pprof") == 0) {
        cost_tree_pprof(out, profile, event);
        return;
    }
    struct calltree *tree = cost_tree(profile, event);
    const char *title = profile->command ? profile->command : request->path;
    if (strcmp(request->format->name, "collapsed") == 0)
        folded_write(out, tree);
    else if (strcmp(request->format->name, "speedscope") == 0)
        tree_speedscope(out, tree, title);
    else
        flamegraph_write(out, tree,
                         &(struct flamegraph_options){.title = title,
                                                      .details = "exact costs",
                                                      .unit = profile->events[event]});
    calltree_free(tree);
}

static int export_costs(const struct request *request) {
    static const char *const formats[] = {"collapsed", "speedscope", "flamegraph", "pprof"};
    struct annotate_options options = {0};
    bool served = false;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        served |= strcmp(request->format->name, formats[i]) == 0;
    if (!served)
        return words_fail("'%s' holds costs, which can be exported as collapsed, flamegraph, "
                          "speedscope or pprof",
                          request->path);
    struct cost_profile *profile = costs_new();
    int status = cost_words_read(profile, request->path);
    if (!status)
        status = cost_words_events(profile, NULL, request->by, &options);
    if (!status) {
        FILE *out = words_output(request->out, request->path);
        if (out)
            write_costs(out, request, profile, options.sort);
        if (!out || !words_close(out, request->out))
            status = WORDS_FAILED;
    }
    costs_free(profile);
    return status;
}

// ---- the page ----

static int open_documents(const struct request *request, struct document **documents) {
    struct document_window window = {request->filter.from, request->filter.to};
    int status = WORDS_DONE;
    for (size_t i = 0; i <= request->more_count; i++) {
        const char *path = i ? request->more[i - 1] : request->path;
        documents[i] = document_open(path, window, NULL);
        if (documents[i]->problem)
            status = words_fail("cannot read '%s': %s", path, documents[i]->problem);
    }
    return status;
}

static int export_page(const struct request *request) {
    struct document *documents[HTML_FILES];
    size_t count = request->more_count + 1;
    if (page_missing)
        return words_fail("cannot write a page: %s", page_missing);
    int status = open_documents(request, documents);
    FILE *out = status ? NULL : words_output(request->out, request->path);
    if (out)
        html_write(out, documents, count);
    if (!status && (!out || !words_close(out, request->out)))
        status = WORDS_FAILED;
    for (size_t i = 0; i < count; i++) {
        if (status != WORDS_FAILED && documents[i]->notice) {
            fprintf(stderr, "quern: '%s': %s\n", documents[i]->path, documents[i]->notice);
            status = WORDS_PARTIAL;
        }
        document_free(documents[i]);
    }
    return status;
}

// By what the file is.
static int export_file(const struct request *request) {
    char start[8];
    size_t size = sizeof start;
    int fd = words_open(request->path, start, &size);
    if (fd < 0)
        return WORDS_FAILED;
    int status =
        massif_file_is_one(start, size) ? export_massif(request, fd) : export_recording(request);
    close(fd);
    return status;
}

int verb_export(char **words) {
    struct request request = {.filter = HEAP_FILTER_ALL};
    if (words_ask_help(words))
        return usage(stdout, WORDS_DONE);
    if (!*words)
        return usage(stderr, WORDS_FAILED);
    int status = take_words(&request, words);
    if (status)
        return status;
    if (!request.path)
        return words_fail("no file to export; quern export --help says more");
    if (!request.format)
        return words_refuse("format", NULL, list_formats);
    if (request.format->needs == NEEDS_PAGE)
        return export_page(&request);
    if (request.more_count)
        return words_fail("one file at a time: '%s' or '%s'? (--as html takes several)",
                          request.path, request.more[0]);
    if (cost_words_is_one(request.path))
        return export_costs(&request);
    if (stack_words_is_one(request.path))
        return stack_words_export(request.path, request.format->name, request.out);
    request.weight = &heap_weights[0];
    if (request.by && words_weight(request.by, &request.weight))
        return WORDS_FAILED;
    return export_file(&request);
}
