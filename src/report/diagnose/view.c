// The view "growth" of a recording, or of a part of it.
#include "report/diagnose/growth.h"
#include "base/text.h"

void growth_view(FILE *out, const struct growth *growth, size_t top, size_t callers) {
    struct diagnoses diagnoses = {0};
    growth_judge(growth, &diagnoses);
    diagnoses_name(&diagnoses, growth->file);
    diagnoses_sort(&diagnoses);
    size_t count = diagnoses.count;
    fprintf(out, "Functions that kept growing until %.3f s: %zu\n", (double)growth->turn_time / 1e9,
            count);
    if (growth->is_shutdown)
        fprintf(out, "(what the program freed at its end, %s bytes, does not count)\n",
                text_number((char[32]){0}, growth->turn_live - growth->live));
    diagnoses_cut(&diagnoses, top);
    if (count)
        diagnoses_print(out, &diagnoses, callers);
    if (count > top)
        fprintf(out, "and %zu more\n", count - top);
    diagnoses_free(&diagnoses);
}
