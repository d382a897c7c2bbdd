// How long blocks live, by stack.
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/heap/rows.h"
#include "report/heap/views.h"

struct row {
    uint32_t stack;
    const struct lifetimes_site *site;
};

static double average(const struct lifetimes_site *site) {
    return site->ended ? (double)site->life / (double)site->ended : 0;
}

// Short-lived ones first: where most brief blocks are.
static int by_brief(const void *a, const void *b) {
    const struct row *one = a, *other = b;
    if (one->site->brief != other->site->brief)
        return one->site->brief < other->site->brief ? 1 : -1;
    if (one->site->blocks != other->site->blocks)
        return one->site->blocks < other->site->blocks ? 1 : -1;
    return one->stack < other->stack ? -1 : one->stack > other->stack;
}

static void write_sums(FILE *out, const struct lifetimes_site *site) {
    char blocks[32], bytes[32], brief[32];
    fprintf(out,
            "%s blocks of %s bytes, %s (%.1f %%) short-lived; life %.3f ms on average, %.3f "
            "ms at most\n",
            text_number(blocks, site->blocks), text_number(bytes, site->bytes),
            text_number(brief, site->brief),
            site->ended ? 100.0 * (double)site->brief / (double)site->ended : 0,
            average(site) / 1e6, (double)site->longest / 1e6);
    char most[32], most_bytes[32];
    fprintf(out, "   at most %s bytes in %s blocks at a time\n",
            text_number(most_bytes, site->most_bytes), text_number(most, site->most));
}

void heap_view_lifetimes(FILE *out, const struct heap_file *file, const struct lifetimes *lifetimes,
                         const struct heap_view_options *options) {
    struct row *rows = base_allocate((lifetimes->site_count + 1) * sizeof *rows);
    size_t count = 0;
    for (size_t i = 0; i < lifetimes->site_count; i++)
        if (lifetimes->sites[i].blocks)
            rows[count++] = (struct row){(uint32_t)i, &lifetimes->sites[i]};
    qsort(rows, count, sizeof *rows, by_brief);
    fprintf(out, "all:        ");
    write_sums(out, &lifetimes->total);
    fprintf(out, "\nStacks by their short-lived blocks (those that lived less than %.0f ms): %zu\n",
            (double)lifetimes->brief / 1e6, count);
    for (size_t i = 0; i < count && i < options->top; i++) {
        write_sums(out, rows[i].site);
        rows_stack(out, file, rows[i].stack, options->callers);
    }
    if (count > options->top)
        fprintf(out, "and %zu more\n", count - options->top);
    free(rows);
}
