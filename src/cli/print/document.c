#include "cli/print/document.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/print/views.h"
#include "cli/words.h"
#include "report/shared/stack_text.h"
#include "report/shared/tree_text.h"
#include "view/answers/answers.h"
#include "view/documents/findings_file.h"

#define SUMMARY_ROWS 10 // of a table that is only a part of the answer

struct print {
    const struct print_request *request;
    const struct paint *paint;
    struct document *document;
    FILE *out;
    unsigned metric;
};

static void title(const struct print *print, const char *text) {
    fputs(paint_code(print->paint, PAINT_TITLE), print->out);
    paint_name(print->out, print->paint, text, 0);
    fprintf(print->out, "%s\n", paint_code(print->paint, PAINT_PLAIN));
}

// ---- facts -------------------------------------------------------------------------------------

static void put_fact(void *context, const struct document_fact *fact) {
    FILE *out = context;
    char digits[32];
    struct text name = {0};
    text_format(&name, "%s:", fact->label);
    fprintf(out, "%-24s ", name.bytes);
    text_free(&name);
    if (fact->text)
        stack_text_escaped(out, fact->text);
    else
        fputs(text_number(digits, fact->value), out);
    fprintf(out, "%s%s\n", *fact->unit ? " " : "", fact->unit);
}

static void put_head(const struct print *print) {
    struct document *document = print->document;
    fprintf(print->out, "%-24s %s\n", "file:", document->format->help);
    if (document->command) {
        fprintf(print->out, "%-24s ", "command:");
        stack_text_escaped(print->out, document->command);
        fputc('\n', print->out);
    }
    document->format->facts(document, &(struct document_sink){put_fact, print->out});
    if (document->notice)
        fprintf(print->out, "%s%-24s %s%s\n", paint_code(print->paint, PAINT_WARNING),
                "notice:", document->notice, paint_code(print->paint, PAINT_PLAIN));
}

// ---- tables ------------------------------------------------------------------------------------

static int by_self(const void *left, const void *right) {
    const struct answer_row *a = left, *b = right;
    if (a->self != b->self)
        return a->self < b->self ? 1 : -1;
    if (a->total != b->total)
        return a->total < b->total ? 1 : -1;
    int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->group, b->group);
}

static double share(uint64_t part, uint64_t whole) {
    return whole ? (double)part / (double)whole : 0;
}

#define NARROW 80 // columns: with fewer there is no room for both sums and a name

static bool has_calls(const struct print *print) {
    return !print->document->costs || print->document->costs->has_calls;
}

static bool has_callees(const struct print *print) {
    bool is_narrow = print->paint && print->paint->width && print->paint->width < NARROW;
    return has_calls(print) && !is_narrow;
}

static void put_row(const struct print *print, const struct answer_row *row, uint64_t all) {
    char digits[2][32], bar[PAINT_BAR];
    size_t column = 27 + (print->paint ? PAINT_CELLS + 1 : 0);
    fprintf(print->out, "%s%16s %6.2f %%", paint_bar(bar, print->paint, share(row->self, all)),
            text_number(digits[0], row->self), 100 * share(row->self, all));
    if (has_callees(print)) {
        fprintf(print->out, " %16s %6.2f %%", text_number(digits[1], row->total),
                100 * share(row->total, all));
        column += 26;
    }
    fputs("  ", print->out);
    fputs(paint_code(print->paint, PAINT_NAME), print->out);
    column += paint_name(print->out, print->paint, row->name, column);
    fputs(paint_code(print->paint, PAINT_PLAIN), print->out);
    if (*row->group) {
        struct text group = {0};
        text_format(&group, " (%s)", row->group);
        fputs(paint_code(print->paint, PAINT_FAINT), print->out);
        paint_name(print->out, print->paint, group.bytes, column);
        fputs(paint_code(print->paint, PAINT_PLAIN), print->out);
        text_free(&group);
    }
    fputc('\n', print->out);
}

static void put_rows(const struct print *print, struct answer_row *rows, size_t count,
                     const char *what, size_t top) {
    const struct document_metric *metric = &print->document->metrics[print->metric];
    uint64_t all = metric->total;
    struct text heading = {0};
    text_format(&heading, "%*s%16s %8s", print->paint ? PAINT_CELLS + 1 : 0, "", "self", "");
    if (has_callees(print))
        text_format(&heading, " %16s %8s", "with callees", "");
    text_format(&heading, "  %s, by %s", what, metric->help);
    title(print, heading.bytes);
    text_free(&heading);
    qsort(rows, count, sizeof *rows, by_self);
    for (size_t i = 0; i < count && i < top; i++)
        put_row(print, &rows[i], all);
    if (count > top)
        fprintf(print->out, "and %zu more; --top=NUMBER shows them\n", count - top);
}

// ---- views of anything with stacks -------------------------------------------------------------

static const struct calltree *tree_of(const struct print *print, unsigned shape) {
    return document_tree(print->document, print->metric, shape);
}

static void put_functions(const struct print *print, size_t top) {
    size_t count;
    struct answer_row *rows =
        answer_rows(print->document, print->metric, tree_of(print, 0), &count);
    put_rows(print, rows, count, "function", top);
    free(rows);
}

static void view_functions(const struct print *print) {
    put_functions(print, print->request->top);
}

static void view_libraries(const struct print *print) {
    size_t count;
    struct answer_row *rows = answer_library_rows(tree_of(print, 0), &count);
    put_rows(print, rows, count, "library", print->request->top);
    free(rows);
}

static void put_tree(const struct print *print, unsigned shape) {
    const struct calltree *tree = tree_of(print, shape);
    struct text heading = {0};
    char digits[32];
    text_format(&heading, "%s: %s", print->document->metrics[print->metric].help,
                text_number(digits, tree->root.total));
    title(print, heading.bytes);
    text_free(&heading);
    tree_text(print->out, tree, print->request->threshold, print->paint);
}

static void view_top_down(const struct print *print) {
    put_tree(print, 0);
}

static void view_bottom_up(const struct print *print) {
    put_tree(print, CALLTREE_INVERTED);
}

// ---- errors and leaks --------------------------------------------------------------------------

static void put_frame(const struct print *print, const struct findings_frame *frame, bool first) {
    fprintf(print->out, "      %s%s ", paint_code(print->paint, PAINT_FAINT), first ? "at" : "by");
    if (frame->address)
        stack_text_escaped(print->out, frame->address);
    fprintf(print->out, ":%s ", paint_code(print->paint, PAINT_PLAIN));
    fputs(paint_code(print->paint, PAINT_NAME), print->out);
    stack_text_escaped(print->out, frame->function ? frame->function : "???");
    fputs(paint_code(print->paint, PAINT_PLAIN), print->out);
    const char *where = frame->file ? frame->file : frame->object;
    if (where) {
        fputs(frame->file ? " (" : " (in ", print->out);
        stack_text_escaped(print->out, where);
        if (frame->file && frame->line)
            fprintf(print->out, ":%" PRIu32, frame->line);
        fputc(')', print->out);
    }
    fputc('\n', print->out);
}

// The first section repeats the finding's own text, which is left out.
static void put_section(const struct print *print, const struct findings_section *section,
                        const char *what) {
    if (section->text && *section->text && strcmp(section->text, what) != 0) {
        fputs("    ", print->out);
        stack_text_escaped(print->out, section->text);
        fputc('\n', print->out);
    }
    for (size_t i = 0; i < section->frame_count && i < print->request->callers; i++)
        put_frame(print, &section->frames[i], i == 0);
    if (section->frame_count > print->request->callers)
        fprintf(print->out, "      (%zu more frames)\n",
                section->frame_count - print->request->callers);
}

static void put_finding(const struct print *print, const struct findings_finding *finding,
                        size_t number) {
    fprintf(print->out, "\n%s%zu. ",
            paint_code(print->paint, finding->is_leak ? PAINT_WARNING : PAINT_BAD), number);
    stack_text_escaped(print->out, finding->what ? finding->what : "");
    fputs(paint_code(print->paint, PAINT_PLAIN), print->out);
    fprintf(print->out, "%s [", paint_code(print->paint, PAINT_FAINT));
    stack_text_escaped(print->out, finding->kind ? finding->kind : "?");
    if (finding->count > 1)
        fprintf(print->out, ", %" PRIu64 " times", finding->count);
    fprintf(print->out, "]%s\n", paint_code(print->paint, PAINT_PLAIN));
    for (size_t i = 0; i < finding->section_count; i++)
        put_section(print, &finding->sections[i], finding->what ? finding->what : "");
}

static void view_findings(const struct print *print) {
    const struct findings_file *file = print->document->findings;
    if (!file->count)
        fprintf(print->out, "%sNo errors and no leaks.%s\n", paint_code(print->paint, PAINT_GOOD),
                paint_code(print->paint, PAINT_PLAIN));
    for (size_t i = 0; i < file->count && i < print->request->top; i++)
        put_finding(print, &file->list[i], i + 1);
    if (file->count > print->request->top)
        fprintf(print->out, "\nand %zu more; --top=NUMBER shows them\n",
                file->count - print->request->top);
}

// ---- the summary -------------------------------------------------------------------------------

static void view_summary(const struct print *print) {
    const struct document *document = print->document;
    put_head(print);
    if (document->findings) {
        view_findings(print);
        return;
    }
    size_t top = print->request->top < SUMMARY_ROWS ? print->request->top : SUMMARY_ROWS;
    fputc('\n', print->out);
    put_functions(print, top);
    if (document->costs) {
        fprintf(print->out, "\nSource lines%s: quern annotate --auto=yes%s ",
                has_calls(print) ? " and callers" : "", has_calls(print) ? " --tree=both" : "");
        stack_text_escaped(print->out, document->path);
        fputc('\n', print->out);
        return;
    }
    fputc('\n', print->out);
    view_top_down(print);
}

// ---- choosing ----------------------------------------------------------------------------------

static void (*const put_views[PRINT_VIEWS])(const struct print *print) = {
    [VIEW_SUMMARY] = view_summary,     [VIEW_TOP_DOWN] = view_top_down,
    [VIEW_BOTTOM_UP] = view_bottom_up, [VIEW_FUNCTIONS] = view_functions,
    [VIEW_LIBRARIES] = view_libraries, [VIEW_FINDINGS] = view_findings,
};

static int refuse_metric(const struct document *document, const char *name) {
    struct text advice = {0};
    text_string(&advice, document->metric_count ? "this file has: " : "this file has no metrics");
    for (unsigned i = 0; i < document->metric_count; i++)
        text_format(&advice, "%s%s", i ? ", " : "", document->metrics[i].name);
    int status = words_invalid("--by", name, advice.bytes);
    text_free(&advice);
    return status;
}

// For memcheck's XML without leaks, the default is errors.
static int choose_metric(struct print *print) {
    struct document *document = print->document;
    int metric = document_metric(document, print->request->by);
    if (metric < 0)
        return refuse_metric(document, print->request->by ? print->request->by : "");
    if (!print->request->by && document->findings && !document->metrics[0].total)
        metric = 1;
    print->metric = (unsigned)metric;
    return WORDS_DONE;
}

static int put_view(struct print *print, enum print_view view) {
    struct document *document = print->document;
    if (document->problem)
        return words_fail("cannot print '%s': %s", print->request->path, document->problem);
    if (view == VIEW_FINDINGS && !document->findings)
        return words_fail("only XML of memcheck has findings; quern diagnose reads recordings");
    int status = choose_metric(print);
    if (status)
        return status;
    if (!document_tree(document, print->metric, 0))
        return words_fail("cannot print '%s': it has no stacks", print->request->path);
    if (document->notice && view != VIEW_SUMMARY)
        fprintf(stderr, "quern: '%s': %s\n", print->request->path, document->notice);
    put_views[view](print);
    return words_close(print->out, NULL) ? WORDS_DONE : WORDS_FAILED;
}

int print_document(const struct print_request *request) {
    const struct heap_filter *filter = request->filter;
    enum print_view view = print_view_find(request->view, PRINT_OTHER);
    if (view == PRINT_VIEWS)
        return print_view_refuse(request->view, PRINT_OTHER);
    if (print_request_filters(request))
        return words_fail("of this file and view, only --from and --to choose a part");
    struct document_window window = {filter->from, filter->to};
    struct print print = {
        .request = request,
        .paint = request->paint,
        .document = document_open(request->path, window, NULL),
        .out = stdout,
    };
    int status = put_view(&print, view);
    document_free(print.document);
    return status;
}
