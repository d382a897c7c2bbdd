#include "report/results/budgets.h"

#include <string.h>

#include "base/text.h"

const struct budget_word budget_words[BUDGETS] = {
    [BUDGET_PEAK] = {"max-peak", "Budget_Peak", "at the peak", "bytes",
                     "tools heap, massif and dhat"},
    [BUDGET_LEAKED] = {"max-leaked", "Budget_Leaked", "not freed", "bytes",
                       "tools heap, massif and dhat, and memcheck with a search for leaks"},
    [BUDGET_ALLOCATIONS] = {"max-allocs", "Budget_Allocations", "allocated", "blocks",
                            "tools heap, massif, dhat and memcheck"},
    [BUDGET_GROWTH] = {"max-growth", "Budget_Growth", "grows by", "bytes a minute",
                       "tool heap, and massif with time in milliseconds"},
};

bool budgets_any(const struct budget limits[BUDGETS]) {
    bool any = false;
    for (size_t i = 0; i < BUDGETS; i++)
        any |= limits[i].is_set;
    return any;
}

void budget_number(struct budget_numbers *numbers, enum budget_kind kind, uint64_t value) {
    numbers->is_known[kind] = true;
    numbers->value[kind] = value;
}

bool budget_exceeded(const struct budget *limit, enum budget_kind kind, uint64_t value,
                     char **told) {
    char digits[2][32];
    struct text text = {0};
    text_format(&text, "%s %s %s, %s allowed", budget_words[kind].what,
                text_number(digits[0], value), budget_words[kind].unit,
                text_number(digits[1], limit->most));
    *told = text_take(&text);
    return value > limit->most;
}

// ---- massif ------------------------------------------------------------------------------------

// Bytes a minute: the straight line through the snapshots after the first quarter of the time.
static double growth_of(const struct massif_file *file) {
    uint64_t end = file->snapshot_count ? file->snapshots[file->snapshot_count - 1].time : 0;
    double count = 0, times = 0, sizes = 0, products = 0, squares = 0;
    for (size_t i = 0; i < file->snapshot_count; i++) {
        double time = (double)file->snapshots[i].time, size = (double)file->snapshots[i].heap;
        if (file->snapshots[i].time < end / 4)
            continue;
        count++;
        times += time;
        sizes += size;
        products += time * size;
        squares += time * time;
    }
    double spread = count * squares - times * times;
    return spread > 0 ? 60000 * (count * products - times * sizes) / spread : 0;
}

void budgets_massif(struct budget_numbers *numbers, const struct massif_file *file) {
    uint64_t peak = 0;
    for (size_t i = 0; i < file->snapshot_count; i++)
        if (file->snapshots[i].heap > peak)
            peak = file->snapshots[i].heap;
    budget_number(numbers, BUDGET_PEAK, peak);
    if (file->snapshot_count)
        budget_number(numbers, BUDGET_LEAKED, file->snapshots[file->snapshot_count - 1].heap);
    if (file->time_unit && strcmp(file->time_unit, "ms") == 0) {
        double growth = growth_of(file);
        budget_number(numbers, BUDGET_GROWTH, growth > 0 ? (uint64_t)growth : 0);
    }
}
