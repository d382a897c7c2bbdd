#include "report/dhat/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/shared/stack_text.h"

enum { BAR = 64, DEEPEST = 200, ENDLESS = 0xffff };

// ---- metrics -----------------------------------------------------------------------------------

static uint64_t bytes_of(const struct dhat_file *file, const struct dhat_point *point) {
    return point->tb;
}

static uint64_t blocks_of(const struct dhat_file *file, const struct dhat_point *point) {
    return point->tbk;
}

static uint64_t peak_of(const struct dhat_file *file, const struct dhat_point *point) {
    return point->gb;
}

static uint64_t end_of(const struct dhat_file *file, const struct dhat_point *point) {
    return point->eb;
}

static uint64_t reads_of(const struct dhat_file *file, const struct dhat_point *point) {
    return point->rb;
}

static uint64_t writes_of(const struct dhat_file *file, const struct dhat_point *point) {
    return point->wb;
}

static uint64_t lifetime_of(const struct dhat_file *file, const struct dhat_point *point) {
    return point->tbk ? point->tl / point->tbk : 0;
}

// As far as it is known: of blocks that were never touched at all, and where accesses are counted
// for each byte.
static uint64_t untouched_of(const struct dhat_file *file, const struct dhat_point *point) {
    uint64_t bytes = 0;
    if (!file->bkacc)
        return 0;
    if (!point->rb && !point->wb)
        return point->tb;
    for (size_t i = 0; i < point->acc_count; i++)
        bytes += !point->acc[i];
    return bytes * point->tbk;
}

static bool is_short_lived(const struct dhat_file *file, const struct dhat_point *point) {
    return file->bklt && point->tbk && lifetime_of(file, point) <= file->tuth;
}

static uint64_t short_lived_of(const struct dhat_file *file, const struct dhat_point *point) {
    return is_short_lived(file, point) ? point->tbk : 0;
}

const struct dhat_metric dhat_metrics[] = {
    {"bytes", "all bytes that were ever allocated", NULL, bytes_of, true},
    {"blocks", "all blocks", "blocks", blocks_of, true},
    {"peak", "bytes when the heap was largest", NULL, peak_of, true},
    {"end", "bytes that were there at the end", NULL, end_of, true},
    {"reads", "bytes read", NULL, reads_of, true},
    {"writes", "bytes written", NULL, writes_of, true},
    {"lifetime", "how long a block lives on average", "", lifetime_of, false},
    {"untouched", "bytes never read nor written, where that is known", NULL, untouched_of, true},
    {"short-lived", "blocks that live no longer than the file's threshold", "blocks",
     short_lived_of, true},
};
const size_t dhat_metric_count = sizeof dhat_metrics / sizeof *dhat_metrics;

// ---- words -------------------------------------------------------------------------------------

struct print {
    FILE *out;
    const struct dhat_file *file;
    const struct dhat_print_options *options;
    const char *bytes, *blocks, *time; // units
    uint64_t total;                    // of the metric
};

static double share(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void put_frame(const struct print *print, uint32_t frame, unsigned indent) {
    fprintf(print->out, "%*s", (int)indent, "");
    stack_text_escaped(print->out, print->file->frames.keys[frame].bytes);
    fputc('\n', print->out);
}

// "1,234 bytes in 5 blocks"
static void put_sum(const struct print *print, const char *what, uint64_t bytes, uint64_t blocks) {
    char first[32], second[32];
    fprintf(print->out, "%s%s %s in %s %s", what, text_number(first, bytes), print->bytes,
            text_number(second, blocks), print->blocks);
}

// ---- one point ---------------------------------------------------------------------------------

// Each character stands for a byte, or, of larger blocks, for several: how often they were accessed
// on average, in steps of a power of the largest number.
static void put_bar(const struct print *print, const struct dhat_point *point) {
    static const char levels[] = ".:-=+*#%@";
    enum { LEVELS = sizeof levels - 1 };
    static const char *const blocks[LEVELS] = {"▁", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    size_t count = point->acc_count, width = count < BAR ? count : BAR;
    uint32_t most = 0;
    char digits[32];
    for (size_t i = 0; i < count; i++)
        if (point->acc[i] > most)
            most = point->acc[i];
    fprintf(print->out, "     accesses  |%s", paint_code(print->options->paint, PAINT_GOOD));
    for (size_t i = 0; i < width; i++) {
        size_t from = i * count / width, to = (i + 1) * count / width;
        uint64_t sum = 0;
        for (size_t j = from; j < to; j++)
            sum += point->acc[j];
        uint64_t mean = (sum + (to - from) - 1) / (to - from);
        unsigned level = 0;
        // The level at which mean^LEVELS passes most^level.
        for (uint64_t bits = mean; bits > 1; bits >>= 1)
            level++;
        unsigned top = 0;
        for (uint64_t bits = most; bits > 1; bits >>= 1)
            top++;
        unsigned step = top ? level * (LEVELS - 1) / top : LEVELS - 1;
        if (print->options->paint && print->options->paint->unicode)
            fputs(sum ? blocks[step] : " ", print->out);
        else
            fputc(sum ? levels[step] : '_', print->out);
    }
    fputs(paint_code(print->options->paint, PAINT_PLAIN), print->out);
    fprintf(print->out, "| byte 0 to %zu, at most %s times%s\n", count - 1,
            text_number(digits, most), most >= ENDLESS ? " or more" : "");
}

static void put_lifetimes(const struct print *print, const struct dhat_point *point) {
    char digits[32];
    fprintf(print->out, "     lifetime  %s %s on average (%.2f%% of the run)%s\n",
            text_number(digits, lifetime_of(print->file, point)), print->time,
            share(lifetime_of(print->file, point), print->file->te),
            is_short_lived(print->file, point) ? ", short-lived" : "");
    put_sum(print, "     at most   ", point->mb, point->mbk);
    put_sum(print, "; at t-gmax ", point->gb, point->gbk);
    put_sum(print, "; at t-end ", point->eb, point->ebk);
    fputc('\n', print->out);
}

static void put_accesses(const struct print *print, const struct dhat_point *point) {
    char digits[32];
    double size = point->tb ? (double)point->tb : 1;
    fprintf(print->out, "     reads     %s %s (%.2f per byte)", text_number(digits, point->rb),
            print->bytes, (double)point->rb / size);
    fprintf(print->out, ", writes %s %s (%.2f per byte)", text_number(digits, point->wb),
            print->bytes, (double)point->wb / size);
    uint64_t untouched = untouched_of(print->file, point);
    if (untouched)
        fprintf(print->out, ", %s %s never touched", text_number(digits, untouched), print->bytes);
    fputc('\n', print->out);
    if (point->acc_count)
        put_bar(print, point);
}

static void put_point(const struct print *print, const struct dhat_point *point, size_t place) {
    const struct dhat_metric *by = print->options->by;
    uint64_t value = by->of(print->file, point);
    char digits[32], bar[PAINT_BAR];
    fprintf(print->out, "\n%s%3zu. %s %s",
            by->adds_up && print->total
                ? paint_bar(bar, print->options->paint, (double)value / (double)print->total)
                : "",
            place, text_number(digits, value),
            !by->unit             ? print->bytes
            : by->of == blocks_of ? print->blocks
            : *by->unit           ? by->unit
                                  : print->time);
    if (by->adds_up)
        fprintf(print->out, " (%.2f%%)", share(value, print->total));
    put_sum(print, ": ", point->tb, point->tbk);
    fprintf(print->out, ", %.1f %s on average\n",
            point->tbk ? (double)point->tb / (double)point->tbk : 0, print->bytes);
    if (print->file->bklt)
        put_lifetimes(print, point);
    if (print->file->bkacc)
        put_accesses(print, point);
    fputs("     ", print->out);
    stack_text_escaped(print->out, print->file->verb);
    fputs(" at\n", print->out);
    for (size_t i = 0; i < point->fs_count && i < print->options->callers; i++)
        put_frame(print, point->fs[i], 7);
    if (point->fs_count > print->options->callers)
        fprintf(print->out, "       (%zu more frames)\n",
                point->fs_count - print->options->callers);
}

// ---- the list ----------------------------------------------------------------------------------

struct ranked {
    const struct dhat_point *point;
    uint64_t value;
    size_t place; // in the file
};

static int heavier_first(const void *a, const void *b) {
    const struct ranked *left = a, *right = b;
    if (left->value != right->value)
        return left->value < right->value ? 1 : -1;
    return left->place < right->place ? -1 : left->place > right->place;
}

static void put_list(const struct print *print) {
    const struct dhat_file *file = print->file;
    struct ranked *ranked = base_allocate((file->point_count + 1) * sizeof *ranked);
    size_t count = 0;
    for (size_t i = 0; i < file->point_count; i++) {
        uint64_t value = print->options->by->of(file, &file->points[i]);
        if (value)
            ranked[count++] = (struct ranked){&file->points[i], value, i};
    }
    qsort(ranked, count, sizeof *ranked, heavier_first);
    for (size_t i = 0; i < count && i < print->options->top; i++)
        put_point(print, ranked[i].point, i + 1);
    if (count > print->options->top)
        fprintf(print->out, "\n(%zu more points; --top=NUMBER shows them)\n",
                count - print->options->top);
    free(ranked);
}

// ---- the tree ----------------------------------------------------------------------------------

static int by_stack(const void *a, const void *b) {
    const struct dhat_point *left = ((const struct ranked *)a)->point;
    const struct dhat_point *right = ((const struct ranked *)b)->point;
    for (size_t i = 0; i < left->fs_count && i < right->fs_count; i++)
        if (left->fs[i] != right->fs[i])
            return left->fs[i] < right->fs[i] ? -1 : 1;
    return left->fs_count < right->fs_count ? -1 : left->fs_count > right->fs_count;
}

static bool same_frame(const struct ranked *a, const struct ranked *b, size_t depth) {
    return a->point->fs_count > depth && b->point->fs_count > depth &&
           a->point->fs[depth] == b->point->fs[depth];
}

// Points that share the frames above; sorted by stack.
struct branch {
    const struct ranked *first;
    size_t count;
    uint64_t value;
};

static int heavier_branch_first(const void *a, const void *b) {
    const struct branch *left = a, *right = b;
    return left->value < right->value ? 1 : left->value > right->value ? -1 : 0;
}

static void put_branch(const struct print *print, const struct branch *branch, size_t depth,
                       unsigned level);

static void put_children(const struct print *print, const struct branch *branch, size_t depth,
                         unsigned level) {
    struct branch *children = base_allocate((branch->count + 1) * sizeof *children);
    size_t count = 0, small = 0;
    uint64_t small_value = 0;
    char digits[32];
    for (size_t i = 0; i < branch->count; i++) {
        const struct ranked *ranked = &branch->first[i];
        if (!count || !same_frame(children[count - 1].first, ranked, depth))
            children[count++] = (struct branch){.first = ranked};
        children[count - 1].count++;
        children[count - 1].value += ranked->value;
    }
    qsort(children, count, sizeof *children, heavier_branch_first);
    for (size_t i = 0; i < count; i++) {
        bool is_small = share(children[i].value, print->total) < print->options->threshold;
        if (is_small || level > DEEPEST || depth > print->options->callers) {
            small++;
            small_value += children[i].value;
        } else {
            put_branch(print, &children[i], depth, level);
        }
    }
    if (small && small_value)
        fprintf(print->out, "%*s%6.2f%%  %s  [%zu insignificant]\n", (int)(2 * level), "",
                share(small_value, print->total), text_number(digits, small_value), small);
    free(children);
}

static void put_branch(const struct print *print, const struct branch *branch, size_t depth,
                       unsigned level) {
    const struct ranked *first = branch->first, *last = first + branch->count - 1;
    char digits[32];
    fprintf(print->out, "%*s%6.2f%%  %s", (int)(2 * level), "", share(branch->value, print->total),
            text_number(digits, branch->value));
    unsigned indent = 2;
    // Frames that all of them share stand below each other.
    do {
        if (first->point->fs_count > depth)
            put_frame(print, first->point->fs[depth], indent);
        else
            fputs("  (here)\n", print->out);
        depth++;
        indent = 2 * level + 11;
    } while (same_frame(first, last, depth));
    if (branch->count > 1)
        put_children(print, branch, depth, level + 1);
}

static void put_tree(const struct print *print) {
    const struct dhat_file *file = print->file;
    struct ranked *ranked = base_allocate((file->point_count + 1) * sizeof *ranked);
    for (size_t i = 0; i < file->point_count; i++)
        ranked[i] =
            (struct ranked){&file->points[i], print->options->by->of(file, &file->points[i]), i};
    qsort(ranked, file->point_count, sizeof *ranked, by_stack);
    struct branch root = {ranked, file->point_count, print->total};
    fputc('\n', print->out);
    put_children(print, &root, 0, 0);
    free(ranked);
}

// ---- all of it ---------------------------------------------------------------------------------

static void put_head(const struct print *print) {
    const struct dhat_file *file = print->file;
    struct dhat_point sum = {0};
    char digits[32];
    uint64_t untouched = 0;
    for (size_t i = 0; i < file->point_count; i++) {
        const struct dhat_point *point = &file->points[i];
        sum.tb += point->tb;
        sum.tbk += point->tbk;
        sum.gb += point->gb;
        sum.gbk += point->gbk;
        sum.eb += point->eb;
        sum.ebk += point->ebk;
        sum.rb += point->rb;
        sum.wb += point->wb;
        untouched += untouched_of(file, point);
    }
    fputs("command:    ", print->out);
    stack_text_escaped(print->out, file->cmd);
    fprintf(print->out, "\nprocess:    %" PRId64 "\nmode:       ", file->pid);
    stack_text_escaped(print->out, file->mode);
    fprintf(print->out, "\ntime:       %s %s", text_number(digits, file->te), print->time);
    if (file->bklt)
        fprintf(print->out, "; the heap was largest at %s", text_number(digits, file->tg));
    put_sum(print, "\ntotal:      ", sum.tb, sum.tbk);
    fprintf(print->out, ", at %zu program points\n", file->point_count);
    if (file->bklt) {
        put_sum(print, "at t-gmax:  ", sum.gb, sum.gbk);
        put_sum(print, "\nat t-end:   ", sum.eb, sum.ebk);
        fputc('\n', print->out);
    }
    if (!file->bkacc)
        return;
    fprintf(print->out, "reads:      %s %s\n", text_number(digits, sum.rb), print->bytes);
    fprintf(print->out, "writes:     %s %s\n", text_number(digits, sum.wb), print->bytes);
    fprintf(print->out, "untouched:  %s %s at least\n", text_number(digits, untouched),
            print->bytes);
}

// Units come from the file; what is not plain text is not shown.
static const char *unit(const char *text, const char *otherwise) {
    size_t step;
    for (const char *at = text; at && *at; at += step)
        if (!(step = stack_text_printable((const unsigned char *)at)))
            return otherwise;
    return text ? text : otherwise;
}

void dhat_print(FILE *out, const struct dhat_file *file, const struct dhat_print_options *options) {
    struct print print = {.out = out,
                          .file = file,
                          .options = options,
                          .bytes = unit(file->bsu, "bytes"),
                          .blocks = unit(file->bksu, "blocks"),
                          .time = unit(file->tu, "units of time")};
    for (size_t i = 0; i < file->point_count; i++)
        print.total += options->by->of(file, &file->points[i]);
    put_head(&print);
    fprintf(out, "\nby %s: %s\n", options->by->name, options->by->help);
    if (options->as_tree)
        put_tree(&print);
    else
        put_list(&print);
}
