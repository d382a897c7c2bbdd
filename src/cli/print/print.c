// quern print FILE: shows any file that Quern or its peers write. A massif.out, a dhat.out and a
// recording have printers of their own; print/document.h prints all others.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/cost_words.h"
#include "cli/filter.h"
#include "cli/print/document.h"
#include "cli/print/json.h"
#include "cli/print/views.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "report/dhat/print.h"
#include "report/heap/text.h"
#include "report/diagnose/growth.h"
#include "report/heap/views.h"
#include "report/massif/print.h"

struct request {
    const char *path;
    struct massif_print_options massif;
    struct heap_text_options heap;
    enum print_view view; // of a recording
    struct heap_view_options views;
    struct heap_filter filter;
    bool is_filtered;
    bool json;
    const char *view_name, *by; // as given
    enum paint_choice colour;
    struct paint paint;
    bool has_width; // --x was given
};

static int fail(const char *path, const char *reason) {
    fprintf(stderr, "quern: cannot print '%s': %s\n", path, reason);
    return 1;
}

static int take_view(struct request *request) {
    request->view = print_view_find(request->view_name, PRINT_RECORDING);
    if (request->view == PRINT_VIEWS)
        return print_view_refuse(request->view_name, PRINT_RECORDING);
    return WORDS_DONE;
}

// ---- massif.out ----

static int print_massif(struct request *request, int fd) {
    FILE *in = fdopen(fd, "r");
    struct massif_file file;
    char *problem = in ? massif_file_read(in, &file) : base_copy(strerror(errno));
    int status = 0;
    if (problem)
        status = fail(request->path, problem);
    else
        massif_print(stdout, &file, &request->massif);
    if (in) {
        massif_file_free(&file);
        fclose(in);
    }
    free(problem);
    return status;
}

// ---- dhat.out ----

static int refuse_dhat_metric(const char *name) {
    struct text advice = {0};
    text_string(&advice, "choose one of ");
    for (size_t i = 0; i < dhat_metric_count; i++)
        text_format(&advice, "%s%s", i ? ", " : "", dhat_metrics[i].name);
    int status = words_invalid("--by", name, advice.bytes);
    text_free(&advice);
    return status;
}

static int choose_dhat(const struct request *request, struct dhat_print_options *options) {
    const char *view = request->view_name, *by = request->by;
    for (size_t i = 0; by && i < dhat_metric_count; i++)
        if (strcmp(dhat_metrics[i].name, by) == 0)
            options->by = &dhat_metrics[i];
    if (by && strcmp(options->by->name, by) != 0)
        return refuse_dhat_metric(by);
    options->as_tree = view && strcmp(view, "tree") == 0;
    if (view && !options->as_tree && strcmp(view, "points") != 0)
        return words_invalid("--view", view, "choose one of points, tree");
    return WORDS_DONE;
}

static int print_dhat(const struct request *request, int fd) {
    struct dhat_print_options options = {.by = &dhat_metrics[0],
                                         .threshold = request->views.threshold,
                                         .top = request->views.top,
                                         .callers = request->views.callers,
                                         .paint = request->views.paint};
    if (choose_dhat(request, &options)) {
        close(fd);
        return WORDS_FAILED;
    }
    FILE *in = fdopen(fd, "r");
    struct dhat_file file = {0};
    char *problem = in ? dhat_file_read(in, &file) : base_copy(strerror(errno));
    int status = problem ? fail(request->path, problem) : 0;
    if (!problem)
        dhat_print(stdout, &file, &options);
    dhat_file_free(&file);
    if (in)
        fclose(in);
    free(problem);
    return status;
}

// ---- recordings ----

static void print_line(void *context, const char *text) {
    puts(text);
}

// Says which part the report covers.
static void print_part(const struct request *request, uint64_t end) {
    uint64_t from = request->filter.from < end ? request->filter.from : end;
    if (!request->is_filtered)
        return;
    printf("filtered:   the report covers a part of it");
    if (from || request->filter.to != UINT64_MAX)
        printf(", %.3f s from %.3f to %.3f s", (double)(end - from) / 1e9, (double)from / 1e9,
               (double)end / 1e9);
    puts("");
}

static void print_heads(const struct request *request, const struct heap_file *file) {
    const struct recording_info *info = &file->info;
    printf("command:    ");
    stack_text_escaped(stdout, info->process.command ? info->process.command : "(unknown)");
    printf("\nprocess:    %d\n", info->process.pid);
    if (info->damage)
        printf("damaged:    %s; the report covers what comes before\n", info->damage);
    else if (info->is_live)
        puts("live:       the program still runs; the last second may be missing");
    else if (!info->is_complete)
        puts("cut off:    Quern ended before the program; the last second may be missing");
    char *merged = heap_text_merges(&info->merges);
    if (merged)
        printf("merged:     %s\n", merged);
    free(merged);
    print_part(request, file->summary.time);
    char digits[32];
    if (info->end.missed)
        printf("missed:     %s events could not be recorded\n",
               text_number(digits, info->end.missed));
}

// Reads the recording into the sink, which may be NULL. NULL, or a message to be freed.
static char *read_part(const struct request *request, int fd, struct heap_file *file,
                       const struct heap_sink *sink) {
    return heap_filter_read(fd, file, request->is_filtered ? &request->filter : NULL, sink, !!sink);
}

// Growth must know all allocations of the run before it can choose its moments.
static char *print_growth(const struct request *request, int fd, const struct heap_file *file) {
    struct growth *growth = growth_new(file);
    struct heap_sink sink;
    struct heap_file again;
    growth_sink(growth, &sink);
    char *problem = lseek(fd, 0, SEEK_SET) < 0 ? base_copy("it cannot be read twice") : NULL;
    if (!problem) {
        problem = read_part(request, fd, &again, &sink);
        if (!problem)
            growth_view(stdout, growth, request->views.top, request->views.callers);
        heap_file_free(&again);
    }
    growth_free(growth);
    return problem;
}

static char *print_view(const struct request *request, int fd, const struct heap_file *file,
                        const struct heap_threads *threads, const struct lifetimes *lifetimes) {
    switch (request->view) {
    case VIEW_TOP_DOWN:
        heap_view_top_down(stdout, file, &request->views);
        break;
    case VIEW_BOTTOM_UP:
        heap_view_bottom_up(stdout, file, &request->views);
        break;
    case VIEW_LIBRARIES:
        heap_view_libraries(stdout, file, &request->views);
        break;
    case VIEW_THREADS:
        heap_view_threads(stdout, file, threads, &request->views);
        break;
    case VIEW_LIFETIMES:
        heap_view_lifetimes(stdout, file, lifetimes, &request->views);
        break;
    case VIEW_MINE:
        heap_text_ending(&file->summary, file->names, request->views.top, print_line, NULL);
        break;
    case VIEW_GROWTH:
        return print_growth(request, fd, file);
    default:
        heap_text(&file->summary, file->names, &request->heap, print_line, NULL);
    }
    return NULL;
}

static int print_recording(struct request *request, int fd) {
    struct heap_file file;
    struct heap_threads threads = {0};
    struct lifetimes lifetimes = {.brief = HEAP_VIEW_BRIEF};
    struct heap_sink sink;
    if (request->view == VIEW_LIFETIMES)
        lifetimes_sink(&lifetimes, &sink);
    else
        heap_threads_sink(&threads, &sink);
    bool is_needed = request->view == VIEW_THREADS || request->view == VIEW_LIFETIMES;
    char *problem = read_part(request, fd, &file, is_needed ? &sink : NULL);
    if (!problem && request->massif.peak_only) {
        char digits[32];
        printf("Peak memory usage: %s bytes\n", text_number(digits, file.summary.total.peak_bytes));
    } else if (!problem) {
        print_heads(request, &file);
        request->heap.from = request->filter.from;
        problem = print_view(request, fd, &file, &threads, &lifetimes);
    }
    int status = problem ? fail(request->path, problem) : 0;
    heap_threads_free(&threads);
    lifetimes_free(&lifetimes);
    heap_file_free(&file);
    free(problem);
    close(fd);
    return status;
}

// ---- all of them ----

static struct print_request in_general(const struct request *request) {
    return (struct print_request){
        .path = request->path,
        .view = request->view_name,
        .by = request->by,
        .threshold = request->views.threshold,
        .top = request->views.top,
        .callers = request->views.callers,
        .filter = &request->filter,
        .paint = request->views.paint,
    };
}

// The first bytes of the file choose the printer. Views that all files share have one printer.
static int print_file(struct request *request) {
    int fd = open(request->path, O_RDONLY | O_CLOEXEC);
    char start[8] = {0};
    ssize_t size = fd < 0 ? -1 : pread(fd, start, sizeof start, 0);
    if (size < 0) {
        int status = fail(request->path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return status;
    }
    bool is_general = print_view_find(request->view_name, PRINT_ANY) != PRINT_VIEWS;
    bool is_recording = heap_file_is_one(start, (size_t)size);
    if (is_recording && take_view(request)) {
        close(fd);
        return WORDS_FAILED;
    }
    if (is_recording && request->view != VIEW_FUNCTIONS) {
        if (!request->by || !words_weight(request->by, &request->views.weight))
            return print_recording(request, fd);
        close(fd);
        return WORDS_FAILED;
    }
    if (!is_general && dhat_file_is_one(start, (size_t)size))
        return print_dhat(request, fd);
    bool is_summary = !request->view_name || strcmp(request->view_name, "summary") == 0;
    if (is_summary && !request->by && massif_file_is_one(start, (size_t)size) &&
        !cost_words_is_one(request->path))
        return print_massif(request, fd);
    close(fd);
    struct print_request general = in_general(request);
    return print_document(&general);
}

static void choose_paint(struct request *request) {
    const struct paint *paint = &request->paint;
    if (!paint_choose(&request->paint, request->colour, STDOUT_FILENO))
        return;
    request->massif.paint = request->heap.paint = request->views.paint = paint;
    // The graph has a scale on its left and a unit on its right.
    enum { BESIDE = 9, LEAST = 4, MOST = 1000 };
    if (!request->has_width && paint->width > BESIDE + LEAST)
        request->massif.width = paint->width - BESIDE < MOST ? paint->width - BESIDE : MOST;
}

// ---- the verb ----

static int take_arguments(const struct arguments *arguments, struct request *request) {
    request->path = arguments->operands[0];
    if (arguments->operand_count > 1)
        return words_fail("one file at a time: '%s' and '%s'", request->path,
                          arguments->operands[1]);
    request->massif.threshold = request->views.threshold = argument_decimal(arguments, "threshold");
    request->has_width = argument_given(arguments, "x");
    if (request->has_width)
        request->massif.width = (unsigned)argument_number(arguments, "x");
    request->massif.height = (unsigned)argument_number(arguments, "y");
    request->massif.peak_only = argument_given(arguments, "peak-only");
    if (argument_given(arguments, "top"))
        request->heap.top = request->views.top = argument_number(arguments, "top");
    request->heap.callers = request->views.callers = argument_number(arguments, "num-callers");
    request->json = argument_given(arguments, "json");
    request->view_name = argument_text(arguments, "view");
    request->by = argument_text(arguments, "by");
    request->colour = (enum paint_choice)argument_choice(arguments, "color");
    return filter_arguments(arguments, &request->filter, &request->is_filtered);
}

static int run_print(const struct arguments *arguments) {
    words_choose_own(arguments);
    struct request request = {
        .massif = {.width = 72},
        .heap = {.top = 5},
        .views = {.weight = &heap_weights[0], .top = 20},
        .filter = HEAP_FILTER_ALL,
    };
    int status = take_arguments(arguments, &request);
    if (status)
        return status;
    if (request.json) {
        struct print_request general = in_general(&request);
        return print_json(&general);
    }
    struct text typed = {0};
    for (char *const *word = arguments->words; *word; word++)
        text_format(&typed, "%s%s", typed.size ? " " : "", *word);
    request.massif.arguments = typed.bytes;
    choose_paint(&request);
    status = print_file(&request);
    text_free(&typed);
    return status;
}

static bool offer_metrics(size_t index, struct option_choice *choice) {
    if (index >= dhat_metric_count)
        return false;
    *choice =
        (struct option_choice){.name = dhat_metrics[index].name, .help = dhat_metrics[index].help};
    return true;
}

static bool offer_dhat_views(size_t index, struct option_choice *choice) {
    static const struct option_choice views[] = {
        {.name = "points", .help = "program points, the default"},
        {.name = "tree", .help = "program points as a tree of calls"},
    };
    if (index < sizeof views / sizeof *views)
        *choice = views[index];
    return index < sizeof views / sizeof *views;
}

static const struct option options[] = {
    {.name = "view",
     .type = OPTION_STRING,
     .value = "VIEW",
     .help = "what to show, from the lists below; default: summary"},
    {.name = "by",
     .type = OPTION_STRING,
     .value = "WEIGHT",
     .offers = words_offer_weights,
     .help = "weight of a stack; default: peak. Of other files, an event or metric"},
    {.name = "top",
     .type = OPTION_NUMBER,
     .most = 1000000,
     .help = "number of rows in each list; default: 20, in a recording's summary 5"},
    {.name = "num-callers",
     .type = OPTION_NUMBER,
     .least = 1,
     .most = 500,
     .initial = "12",
     .help = "maximum number of frames in a stack"},
    WORDS_MINE,
    {.name = "threshold",
     .type = OPTION_DECIMAL,
     .value = "PERCENT",
     .most = 100,
     .initial = "1.0",
     .help = "smallest share to show in a massif.out or a tree"},
    {.name = "x",
     .type = OPTION_NUMBER,
     .value = "COLUMNS",
     .least = 4,
     .most = 1000,
     .help = "width of the graph; default: the terminal's, or 72"},
    {.name = "y",
     .type = OPTION_NUMBER,
     .value = "ROWS",
     .least = 4,
     .most = 1000,
     .initial = "20",
     .help = "height of the graph"},
    {.name = "peak-only", .type = OPTION_FLAG, .help = "show only the size of the peak"},
    {.name = "json", .type = OPTION_FLAG, .help = "write JSON for programs"},
    {.name = "color",
     .type = OPTION_CHOICE,
     .choices = "auto|always|never", // the order of enum paint_choice
     .initial = "auto",
     .help = "use colours and bars; auto: on a terminal, unless NO_COLOR is set"},
    FILTER_OPTIONS,
    {0},
};

static const struct verb_list lists[] = {
    {"Views of a recording", print_offer_recording_views},
    {"Views of a dhat.out", offer_dhat_views},
    {"Metrics of a dhat.out (--by) [bytes]", offer_metrics},
    {"Views of other files", print_offer_other_views},
    {"With --json: views of any file that quern view shows", print_offer_json_views},
    {0},
};

const struct verb verb_print = {
    .name = "print",
    .usage = "[options] FILE",
    .help = "show any file of Quern or Valgrind in the terminal",
    .description = "FILE is a recording of --tool=heap, or a massif.out, dhat.out, callgrind.out, "
                   "cachegrind.out or memcheck XML of Quern or Valgrind, or collapsed stacks.",
    .options = options,
    .lists = lists,
    .operands_least = 1,
    .run = run_print,
};
