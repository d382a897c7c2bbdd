// What a dhat.out file says about memory that is asked for and not used.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/diagnose/diagnose.h"
#include "report/shared/stack_text.h"

#define UNUSED_BYTES (256ull << 10) // of a place, at least
#define UNUSED_SHARE 0.5            // of what it allocates
// Pages of larger blocks that nobody touches take no memory: tables and arenas live on that.
#define UNUSED_BLOCK (64ull << 10) // on average, at most
// Points that share so many frames are one place, which is told once.
#define PLACE_FRAMES 3
#define SHOWN_MOST   5

struct unused {
    uint64_t sure;     // bytes that nobody can have touched
    uint64_t probable; // the same if what is read was written before
};

// Where bytes are counted one by one, those with no access at all, in any block; else no more bytes
// can have been touched than were read and written.
static struct unused unused_of(const struct dhat_point *point) {
    uint64_t more = point->rb > point->wb ? point->rb : point->wb, sum = point->rb + point->wb;
    if (point->acc_count) {
        uint64_t never = 0;
        for (size_t i = 0; i < point->acc_count; i++)
            never += !point->acc[i];
        return (struct unused){never * point->tbk, never * point->tbk};
    }
    return (struct unused){sum < point->tb ? point->tb - sum : 0,
                           more < point->tb ? point->tb - more : 0};
}

static bool is_much(uint64_t bytes, uint64_t of) {
    return bytes >= UNUSED_BYTES && (double)bytes >= UNUSED_SHARE * (double)of;
}

// Points that are one place, summed up.
struct place {
    const struct dhat_point *point; // the weightiest of them
    size_t points;
    uint64_t point_bytes; // that it does not use
    uint64_t tb, tbk, rb, wb;
    struct unused unused;
};

static bool is_same_place(const struct dhat_point *a, const struct dhat_point *b) {
    for (size_t i = 0; i < PLACE_FRAMES; i++) {
        if (i == a->fs_count || i == b->fs_count)
            return a->fs_count == b->fs_count;
        if (a->fs[i] != b->fs[i])
            return false;
    }
    return true;
}

static void add_point(struct place *place, const struct dhat_point *point) {
    struct unused unused = unused_of(point);
    if (!place->points || unused.probable > place->point_bytes) {
        place->point = point;
        place->point_bytes = unused.probable;
    }
    place->points++;
    place->tb += point->tb;
    place->tbk += point->tbk;
    place->rb += point->rb;
    place->wb += point->wb;
    place->unused.sure += unused.sure;
    place->unused.probable += unused.probable;
}

static bool is_unused(const struct dhat_point *point) {
    uint64_t blocks = point->tbk ? point->tbk : 1;
    return point->tb / blocks <= UNUSED_BLOCK &&
           (double)unused_of(point).probable >= UNUSED_SHARE * (double)point->tb;
}

// "0xADDRESS: FUNCTION (FILE:LINE)" or "... (in OBJECT)"; parts that are missing stay so.
static void add_frame(struct diagnosis *diagnosis, const struct dhat_file *file, uint32_t number) {
    const char *path = number < file->path_count ? file->paths[number] : NULL;
    char *text = base_copy(file->frames.keys[number].bytes);
    struct result_frame frame = {.address = strtoull(text, NULL, 16)};
    char *name = strstr(text, ": ");
    name = name ? name + 2 : text;
    frame.function = name;
    size_t length = strlen(name);
    char *open = strrchr(name, '(');
    if (open && open > name + 1 && open[-1] == ' ' && name[length - 1] == ')') {
        open[-1] = 0;
        name[length - 1] = 0;
        char *colon = strrchr(open + 1, ':');
        if (strncmp(open + 1, "in ", 3) == 0) {
            frame.object = open + 4;
        } else if (colon) {
            *colon = 0;
            frame.path = (char *)(path ? path : open + 1);
            frame.line = (uint32_t)strtoul(colon + 1, NULL, 10);
        }
    }
    diagnosis_add_frame(diagnosis, &frame);
    free(text);
}

static void add_unused(const struct dhat_file *file, const struct place *place,
                       struct diagnoses *diagnoses) {
    bool is_sure = is_much(place->unused.sure, place->tb);
    uint64_t bytes = is_sure ? place->unused.sure : place->unused.probable;
    char digits[5][32];
    struct text text = {0};
    text_format(&text, "Of %s bytes in %s blocks %s%s were %snever read or written",
                text_number(digits[0], place->tb), text_number(digits[1], place->tbk),
                is_sure ? "at least " : "", text_number(digits[2], bytes),
                is_sure ? "" : "probably ");
    if (!is_sure)
        text_format(&text, ": %s bytes were read and %s written", text_number(digits[3], place->rb),
                    text_number(digits[4], place->wb));
    if (place->points > 1)
        text_format(&text, ". They come by %s stacks, mostly this one",
                    text_number(digits[0], place->points));
    text_char(&text, '.');
    struct diagnosis *diagnosis =
        diagnoses_add(diagnoses, DIAGNOSIS_UNUSED, is_sure ? CERTAINTY_CERTAIN : CERTAINTY_LIKELY,
                      bytes, text_take(&text));
    const struct dhat_point *point = place->point;
    for (size_t i = 0; i < point->fs_count; i++)
        if (point->fs[i] < file->frames.count)
            add_frame(diagnosis, file, point->fs[i]);
}

static int by_frames(const void *left, const void *right) {
    const struct dhat_point *a = *(const struct dhat_point *const *)left;
    const struct dhat_point *b = *(const struct dhat_point *const *)right;
    for (size_t i = 0; i < PLACE_FRAMES && i < a->fs_count && i < b->fs_count; i++)
        if (a->fs[i] != b->fs[i])
            return a->fs[i] < b->fs[i] ? -1 : 1;
    if (a->fs_count != b->fs_count)
        return a->fs_count < b->fs_count ? -1 : 1;
    return a < b ? -1 : a > b;
}

void diagnose_dhat(const struct dhat_file *file, struct diagnoses *diagnoses) {
    const struct dhat_point **points = base_allocate((file->point_count + 1) * sizeof *points);
    size_t count = 0;
    *diagnoses = (struct diagnoses){0};
    for (size_t i = 0; file->bkacc && i < file->point_count; i++)
        if (is_unused(&file->points[i]))
            points[count++] = &file->points[i];
    qsort(points, count, sizeof *points, by_frames);
    for (size_t i = 0; i < count;) {
        struct place place = {0};
        size_t first = i;
        while (i < count && is_same_place(points[first], points[i]))
            add_point(&place, points[i++]);
        if (is_much(place.unused.probable, place.tb))
            add_unused(file, &place, diagnoses);
    }
    free(points);
    diagnoses_sort(diagnoses);
    diagnoses_cut(diagnoses, SHOWN_MOST);
}
