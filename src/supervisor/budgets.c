#include "supervisor/budgets.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "report/diagnose.h"
#include "report/heap_text.h"
#include "supervisor/log.h"
#include "supervisor/outputs.h"

static bool failed;

static void judge(const char *rule, const char *what, const char *unit, uint64_t used,
                  const struct budget *budget, int pid) {
    if (!budget->is_set || used <= budget->most)
        return;
    char digits[2][32];
    struct text text = {0};
    text_format(&text, "BUDGET: %s %s %s, %s allowed", what, heap_text_number(digits[0], used),
                unit, heap_text_number(digits[1], budget->most));
    log_print(pid, LOG_USER, text.bytes);
    if (outputs_results())
        results_add(outputs_results(), rule, RESULT_ERROR, text.bytes, pid);
    text_free(&text);
    failed = true;
}

// What the heap as a whole has grown by in a minute, after the warm-up.
static uint64_t growth_of(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct heap_file file;
    double slope = 0;
    if (fd < 0)
        return 0;
    char *problem = heap_file_read(fd, &file, NULL, 0);
    if (!problem)
        problem = diagnose_slope(fd, &file, &slope);
    free(problem);
    heap_file_free(&file);
    close(fd);
    return slope > 0 ? (uint64_t)(60 * slope) : 0;
}

void budgets_check(const struct budget_settings *settings, int pid, const struct summary *summary,
                   const char *path) {
    judge("Budget_Peak", "at the peak", "bytes", summary->total.peak_bytes, &settings->peak, pid);
    judge("Budget_Leaked", "not freed", "bytes", summary->total.live_bytes, &settings->leaked, pid);
    judge("Budget_Allocations", "allocated", "blocks", summary->total.allocated,
          &settings->allocations, pid);
    if (settings->growth.is_set)
        judge("Budget_Growth", "grows by", "bytes a minute", growth_of(path), &settings->growth,
              pid);
}

bool budgets_failed(void) {
    return failed;
}
