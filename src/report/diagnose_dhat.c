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
                       uint64_t unused, struct diagnoses *diagnoses) {
    char digits[3][32];
    struct text text = {0};
    text_format(&text, "Of %s bytes in %s blocks at least %s were never read or written.",
                heap_text_number(digits[0], point->tb), heap_text_number(digits[1], point->tbk),
                heap_text_number(digits[2], unused));
    struct diagnosis *diagnosis =
        diagnoses_add(diagnoses, DIAGNOSIS_UNUSED, CERTAINTY_CERTAIN, unused, text_take(&text));
    for (size_t i = 0; i < point->fs_count; i++)
        if (point->fs[i] < file->frames.count)
            add_frame(diagnosis, file, point->fs[i]);
}

void diagnose_dhat(const struct dhat_file *file, struct diagnoses *diagnoses) {
    *diagnoses = (struct diagnoses){0};
    for (size_t i = 0; file->bkacc && i < file->point_count; i++) {
        const struct dhat_point *point = &file->points[i];
        uint64_t unused = unused_bytes(point);
        if (unused >= UNUSED_BYTES && (double)unused >= UNUSED_SHARE * (double)point->tb)
            add_unused(file, point, unused, diagnoses);
    }
    diagnoses_sort(diagnoses);
    diagnoses_cut(diagnoses, SHOWN_MOST);
}
