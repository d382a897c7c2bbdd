// What a dhat.out file says about memory that is asked for and not used.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report/diagnose.h"
#include "report/heap_text.h"
#include "report/stack_text.h"

#define UNUSED_BYTES (256ull << 10) // of a place, at least
#define UNUSED_SHARE 0.5            // of what it allocates
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

static bool is_much(uint64_t bytes, const struct dhat_point *point) {
    return bytes >= UNUSED_BYTES && (double)bytes >= UNUSED_SHARE * (double)point->tb;
}

// "0xADDRESS: FUNCTION (FILE:LINE)" or "... (in OBJECT)"; parts that are missing stay so.
static void add_frame(struct diagnosis *diagnosis, const struct dhat_file *file, uint32_t number) {
    const char *path = number < file->path_count ? file->paths[number] : NULL;
    char *text = base_copy(file->frames.list[number]);
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

static void add_unused(const struct dhat_file *file, const struct dhat_point *point,
                       struct diagnoses *diagnoses) {
    struct unused unused = unused_of(point);
    bool is_sure = is_much(unused.sure, point);
    uint64_t bytes = is_sure ? unused.sure : unused.probable;
    char digits[5][32];
    struct text text = {0};
    text_format(&text, "Of %s bytes in %s blocks %s%s were %snever read or written",
                heap_text_number(digits[0], point->tb), heap_text_number(digits[1], point->tbk),
                is_sure ? "at least " : "", heap_text_number(digits[2], bytes),
                is_sure ? "" : "probably ");
    if (!is_sure)
        text_format(&text, ": %s bytes were read and %s written",
                    heap_text_number(digits[3], point->rb), heap_text_number(digits[4], point->wb));
    text_char(&text, '.');
    struct diagnosis *diagnosis =
        diagnoses_add(diagnoses, DIAGNOSIS_UNUSED, is_sure ? CERTAINTY_CERTAIN : CERTAINTY_LIKELY,
                      bytes, text_take(&text));
    for (size_t i = 0; i < point->fs_count; i++)
        if (point->fs[i] < file->frames.count)
            add_frame(diagnosis, file, point->fs[i]);
}

void diagnose_dhat(const struct dhat_file *file, struct diagnoses *diagnoses) {
    *diagnoses = (struct diagnoses){0};
    for (size_t i = 0; file->bkacc && i < file->point_count; i++)
        if (is_much(unused_of(&file->points[i]).probable, &file->points[i]))
            add_unused(file, &file->points[i], diagnoses);
    diagnoses_sort(diagnoses);
    diagnoses_cut(diagnoses, SHOWN_MOST);
}
