// quern print FILE: shows any file that Quern or its peers write. A massif.out, a dhat.out and a
// recording have printers of their own; print/document.h serves the rest.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cost_words.h"
#include "cli/print/document.h"
#include "cli/print/json.h"
#include "cli/print/views.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "report/dhat/print.h"
#include "report/heap/text.h"
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
    enum paint_wish wish;
    struct paint paint;
    bool has_width; // --x was given
};

static int fail(const char *path, const char *reason) {
    fprintf(stderr, "quern: cannot print '%s': %s\n", path, reason);
    return 1;
}

// ---- words ----

// False: it is none of these. *status is set otherwise.
static bool take_option(struct request *request, char ***word, int *status) {
    struct massif_print_options *massif = &request->massif;
    struct heap_view_options *views = &request->views;
    const char *value;
    size_t number = 0;
    if (words_value(word, "--threshold", &value)) {
        *status = words_number("--threshold", value, 0, 100, &views->threshold);
        massif->threshold = views->threshold;
    } else if (words_value(word, "--x", &value)) {
        *status = words_whole("--x", value, 4, 1000, &number);
        massif->width = (unsigned)number;
        request->has_width = true;
    } else if (words_value(word, "--y", &value)) {
        *status = words_whole("--y", value, 4, 1000, &number);
        massif->height = (unsigned)number;
    } else if (words_value(word, "--top", &value)) {
        *status = words_whole("--top", value, 0, 1000000, &number);
        request->heap.top = views->top = number;
    } else if (words_value(word, "--num-callers", &value)) {
        *status = words_whole("--num-callers", value, 1, 500, &number);
        request->heap.callers = views->callers = number;
    } else if (strcmp(**word, "--peak-only") == 0) {
        massif->peak_only = true;
    } else if (strcmp(**word, "--json") == 0) {
        request->json = true;
    } else {
        return false;
    }
    return true;
}

static int take_view(struct request *request) {
    request->view = print_view_find(request->view_name, PRINT_RECORDING);
    if (request->view == PRINT_VIEWS)
        return print_view_refuse(request->view_name, PRINT_RECORDING);
    return WORDS_DONE;
}

static int take_colour(struct request *request, const char *value) {
    static const char *const names[] = {"auto", "always", "never"};
    for (unsigned i = 0; value && i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], value) == 0) {
            request->wish = (enum paint_wish)i;
            return WORDS_DONE;
        }
    }
    return words_fail("--color is auto, always or never");
}

static int usage(FILE *out, int status) {
    fputs("usage: quern print [options] FILE\n\n"
          "FILE is a recording of --tool=heap, or, of Quern or of Valgrind, a massif.out, a\n"
          "dhat.out, a callgrind.out, a cachegrind.out or XML of memcheck, or collapsed stacks.\n\n"
          "  --threshold=PERCENT  leave out what holds less in a massif.out or a tree [1.0]\n"
          "  --x=COLUMNS          width of the graph, 4 to 1000 [72, or the terminal's]\n"
          "  --y=ROWS             height of the graph, 4 to 1000 [20]\n"
          "  --peak-only          only the size of the peak\n"
          "  --top=NUMBER         stacks in each list of a recording's summary [5]\n"
          "  --num-callers=NUMBER frames of each stack [12]\n"
          "  --color=auto|always|never\n"
          "                       colour and bars; auto: on a terminal, unless NO_COLOR is set\n",
          out);
    fputs("\n  --view=VIEW, of a recording [summary]:\n", out);
    print_view_help(out, PRINT_RECORDING);
    fputs("\n  --by=WEIGHT, for trees and sums [peak]:\n", out);
    for (size_t i = 0; i < heap_weight_count; i++)
        fprintf(out, "    %-11s %s\n", heap_weights[i].name, heap_weights[i].help);
    fputs("\n  Of a dhat.out, --view=points or tree [points], and --by=METRIC [bytes]:\n", out);
    for (size_t i = 0; i < dhat_metric_count; i++)
        fprintf(out, "    %-11s %s\n", dhat_metrics[i].name, dhat_metrics[i].help);
    fprintf(out, "\n  Of a recording, a part:\n%s", words_filter_help);
    print_document_help(out);
    print_json_help(out);
    return status;
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

static void list_dhat_views(struct text *text) {
    text_string(text, "points|tree");
}

static void list_dhat_metrics(struct text *text) {
    for (size_t i = 0; i < dhat_metric_count; i++)
        text_format(text, "%s%s", i ? "|" : "", dhat_metrics[i].name);
}

// False after a message.
static bool choose_dhat(const struct request *request, struct dhat_print_options *options) {
    const char *view = request->view_name, *by = request->by;
    for (size_t i = 0; by && i < dhat_metric_count; i++)
        if (strcmp(dhat_metrics[i].name, by) == 0)
            options->by = &dhat_metrics[i];
    if (by && strcmp(options->by->name, by) != 0)
        return words_refuse("metric", by, list_dhat_metrics) == WORDS_DONE;
    options->as_tree = view && strcmp(view, "tree") == 0;
    if (view && !options->as_tree && strcmp(view, "points") != 0)
        return words_refuse("view", view, list_dhat_views) == WORDS_DONE;
    return true;
}

static int print_dhat(const struct request *request, int fd) {
    struct dhat_print_options options = {.by = &dhat_metrics[0],
                                         .threshold = request->views.threshold,
                                         .top = request->views.top,
                                         .callers = request->views.callers,
                                         .paint = request->views.paint};
    if (!choose_dhat(request, &options)) {
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

// Which part it is that follows. Filters may let everything pass.
static void print_part(const struct request *request, uint64_t end) {
    uint64_t from = request->filter.from < end ? request->filter.from : end;
    if (!request->is_filtered)
        return;
    printf("filtered:   what follows is about a part of it");
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
        printf("damaged:    %s; what follows is what comes before that\n", info->damage);
    else if (!info->is_complete)
        puts("cut off:    Quern was ended before the program; what follows may lack the last "
             "second");
    char *merged = heap_text_merges(&info->merges);
    if (merged)
        printf("merged:     %s\n", merged);
    free(merged);
    print_part(request, file->summary.time);
    char digits[32];
    if (info->end.missed)
        printf("missed:     %s events could not be recorded\n",
               heap_text_number(digits, info->end.missed));
}

// Reads the recording to a sink, or to none. A message to be freed, or NULL.
static char *read_part(const struct request *request, int fd, struct heap_file *file,
                       const struct heap_sink *sink) {
    return heap_filter_read(fd, file, request->is_filtered ? &request->filter : NULL, sink, !!sink);
}

// Growth needs to know the end before it can choose its moments.
static char *print_growth(const struct request *request, int fd, const struct heap_file *file) {
    struct heap_growth *growth = heap_growth_new(file);
    struct heap_sink sink;
    struct heap_file again;
    heap_growth_sink(growth, &sink);
    char *problem = lseek(fd, 0, SEEK_SET) < 0 ? base_copy("it cannot be read twice") : NULL;
    if (!problem) {
        problem = read_part(request, fd, &again, &sink);
        if (!problem)
            heap_view_growth(stdout, growth, &request->views);
        heap_file_free(&again);
    }
    heap_growth_free(growth);
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
        printf("Peak memory usage: %s bytes\n",
               heap_text_number(digits, file.summary.total.peak_bytes));
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

// What the file begins with tells which printer serves it; views that all files share are made by
// one.
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
    if (!paint_choose(&request->paint, request->wish, STDOUT_FILENO))
        return;
    request->massif.paint = request->heap.paint = request->views.paint = paint;
    // The graph has a scale on its left and a unit on its right.
    enum { BESIDE = 9, LEAST = 4, MOST = 1000 };
    if (!request->has_width && paint->width > BESIDE + LEAST)
        request->massif.width = paint->width - BESIDE < MOST ? paint->width - BESIDE : MOST;
}

static int take_words(struct request *request, char **words, struct text *arguments) {
    int status = WORDS_DONE;
    const char *value;
    for (char **word = words; *word && !status; word++) {
        text_format(arguments, "%s%s", arguments->size ? " " : "", *word);
        if ((*word)[0] != '-' && !request->path)
            request->path = *word;
        else if (words_value(&word, "--view", &request->view_name))
            status = request->view_name ? WORDS_DONE : print_view_refuse(NULL, PRINT_OTHER);
        else if (words_value(&word, "--by", &request->by))
            status = request->by ? WORDS_DONE : words_weight(NULL, &request->views.weight);
        else if (words_value(&word, "--color", &value))
            status = take_colour(request, value);
        else if (words_filter(&word, &request->filter, &status))
            request->is_filtered = true;
        else if ((*word)[0] != '-')
            return words_fail("one file at a time: '%s' and '%s'", request->path, *word);
        else if (!take_option(request, &word, &status))
            return words_fail("unknown option '%s'; quern print --help lists them", *word);
    }
    return status || request->path ? status : usage(stderr, WORDS_FAILED);
}

int verb_print(char **words) {
    struct request request = {
        .massif = {.threshold = 1, .width = 72, .height = 20},
        .heap = {.top = 5, .callers = 12},
        .views = {.weight = &heap_weights[0], .threshold = 1, .top = 20, .callers = 12},
        .filter = HEAP_FILTER_ALL,
    };
    struct text arguments = {0};
    if (words_ask_help(words))
        return usage(stdout, WORDS_DONE);
    int status = take_words(&request, words, &arguments);
    if (!status && request.json) {
        struct print_request general = in_general(&request);
        status = print_json(&general);
    } else if (!status) {
        request.massif.arguments = arguments.bytes;
        choose_paint(&request);
        status = print_file(&request);
    }
    text_free(&arguments);
    return status;
}
