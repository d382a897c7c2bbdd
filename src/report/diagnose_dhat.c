// What a dhat.out file says about memory that is asked for and not used.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/diagnose.h"
#include "report/heap_text.h"
#include "report/stack_text.h"

#define UNUSED_BYTES (256ull << 10) // of a place, at least
#define UNUSED_SHARE 0.5            // of what it allocates
#define SHOWN_MOST   10

struct unused {
    const struct dhat_point *point;
    uint64_t bytes;
};

// Bytes of the point's blocks that nobody ever touched. Where bytes are counted one by one, those
// with no access at all, in any block; else no more bytes can have been touched than were read or
// written.
static uint64_t unused_bytes(const struct dhat_point *point) {
    if (point->acc_count) {
        uint64_t never = 0;
        for (size_t i = 0; i < point->acc_count; i++)
            never += !point->acc[i];
        return never * point->tbk;
    }
    uint64_t touched = point->rb > point->wb ? point->rb : point->wb;
    return touched < point->tb ? point->tb - touched : 0;
}

static int by_bytes(const void *left, const void *right) {
    const struct unused *a = left, *b = right;
    return a->bytes < b->bytes ? 1 : a->bytes > b->bytes ? -1 : 0;
}

static void print_point(FILE *out, const struct dhat_file *file, const struct unused *unused,
                        size_t number) {
    const struct dhat_point *point = unused->point;
    char digits[3][32];
    fprintf(out,
            "%s%zu. More is allocated than is used (certain)\n"
            "  Of %s bytes in %s blocks at least %s were never read or written.\n",
            number > 1 ? "\n" : "", number, heap_text_number(digits[0], point->tb),
            heap_text_number(digits[1], point->tbk), heap_text_number(digits[2], unused->bytes));
    for (size_t i = 0; i < point->fs_count && i < DIAGNOSIS_CALLERS; i++) {
        fprintf(out, "   %s ", i ? "by" : "at");
        if (point->fs[i] < file->frames.count)
            stack_text_escaped(out, file->frames.list[point->fs[i]]);
        fputc('\n', out);
    }
    fputs("  Ask for what is needed, or let the buffer grow with its content.\n", out);
}

void diagnose_dhat(FILE *out, const struct dhat_file *file) {
    struct unused *found = base_allocate((file->point_count + 1) * sizeof *found);
    size_t count = 0;
    for (size_t i = 0; file->bkacc && i < file->point_count; i++) {
        struct unused unused = {&file->points[i], unused_bytes(&file->points[i])};
        if (unused.bytes >= UNUSED_BYTES &&
            (double)unused.bytes >= UNUSED_SHARE * (double)unused.point->tb)
            found[count++] = unused;
    }
    qsort(found, count, sizeof *found, by_bytes);
    if (!file->bkacc)
        fputs("This file does not say what is read and written.\n", out);
    else if (!count)
        fputs("Nothing stands out.\n", out);
    for (size_t i = 0; i < count && i < SHOWN_MOST; i++)
        print_point(out, file, &found[i], i + 1);
    free(found);
}
