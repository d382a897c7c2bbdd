// quern export FILE --as FORMAT: writes a recording in the format of another program.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/cost_words.h"
#include "cli/filter.h"
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
    const char *by; // a weight or, for costs, an event; NULL: not given
};

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
        return words_fail("'%s' is a massif.out; it can be exported as collapsed by peak only",
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
        return words_fail("'%s' holds costs; they can be exported as collapsed, flamegraph, "
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

// Chooses the exporter by the first bytes of the file.
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

// ---- the verb ----

static bool offer_formats(size_t index, struct option_choice *choice) {
    if (index >= heap_format_count)
        return false;
    *choice =
        (struct option_choice){.name = heap_formats[index].name, .help = heap_formats[index].help};
    return true;
}

static int export_any(struct request *request) {
    if (request->format->needs == NEEDS_PAGE)
        return export_page(request);
    if (request->more_count)
        return words_fail("one file at a time: '%s' or '%s'? (--as=html takes several)",
                          request->path, request->more[0]);
    if (cost_words_is_one(request->path))
        return export_costs(request);
    if (stack_words_is_one(request->path))
        return stack_words_export(request->path, request->format->name, request->out);
    request->weight = &heap_weights[0];
    if (request->by && words_weight(request->by, &request->weight))
        return WORDS_FAILED;
    return export_file(request);
}

static int refuse_missing_format(void) {
    struct text formats = {0};
    for (size_t i = 0; i < heap_format_count; i++)
        text_format(&formats, "%s%s", i ? ", " : "", heap_formats[i].name);
    int status = words_fail("no format given; choose --as one of %s", formats.bytes);
    text_free(&formats);
    return status;
}

static int run_export(const struct arguments *arguments) {
    struct request request = {
        .path = arguments->operands[0],
        .out = argument_text(arguments, "o"),
        .by = argument_text(arguments, "by"),
        .filter = HEAP_FILTER_ALL,
    };
    if (!request.path && !arguments->words[0])
        return help_usage_error(&verb_export);
    if (!request.path)
        return words_fail("no file to export; quern export --help shows the usage");
    if (!argument_given(arguments, "as"))
        return refuse_missing_format();
    request.format = &heap_formats[argument_choice(arguments, "as")];
    if (arguments->operand_count > HTML_FILES)
        return words_fail("a page takes at most %d files", HTML_FILES);
    for (size_t i = 1; i < arguments->operand_count; i++)
        request.more[request.more_count++] = arguments->operands[i];
    if (filter_arguments(arguments, &request.filter, &request.is_filtered))
        return WORDS_FAILED;
    return export_any(&request);
}

static const struct option options[] = {
    {.name = "as",
     .type = OPTION_CHOICE,
     .value = "FORMAT",
     .offers = offer_formats,
     .help = "format to write"},
    {.name = "by",
     .type = OPTION_STRING,
     .value = "WEIGHT",
     .offers = words_offer_weights,
     .help = "weight of a stack in collapsed, flamegraph, speedscope and pprof; default: peak, for "
             "costs the first event"},
    {.name = "o",
     .letter = 'o',
     .type = OPTION_STRING,
     .value = "OUT",
     .help = "write to this file; default: standard output"},
    FILTER_OPTIONS,
    {0},
};

const struct verb verb_export = {
    .name = "export",
    .usage = "FILE --as=FORMAT [options]",
    .help = "write a file in the format of another program",
    .description =
        "FILE is a recording of --tool=heap, for every format. A massif.out can be exported as "
        "collapsed. A callgrind.out, a cachegrind.out, the stacks of --tool=flame and collapsed "
        "stacks can be exported as collapsed, flamegraph, speedscope or pprof; WEIGHT of costs is "
        "an event. All of them, and up to four FILEs, can be exported as html.\n"
        "Status 2: FILE is cut off, damaged or still being written; the rest was exported.",
    .options = options,
    .run = run_export,
};
