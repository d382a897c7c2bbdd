// A process's ledger (wire/findings.h), from the supervisor's side. The file belongs to the
// process: a read or write that fails harms nobody but the process itself.
#include <unistd.h>

#include "tools/memcheck/supervisor/parts.h"

bool ledger_read(const struct process_findings *process, size_t offset, void *to, size_t size) {
    return process->ledger >= 0 && pread(process->ledger, to, size, (off_t)offset) == (ssize_t)size;
}

static void answer(const struct process_findings *process, size_t offset, const void *value,
                   size_t size) {
    off_t at = (off_t)(offsetof(struct ledger, answers) + offset);
    if (process->ledger >= 0 && pwrite(process->ledger, value, size, at) < 0)
        return;
}

#define ANSWER(process, field, value)                                                              \
    answer(process, offsetof(struct ledger_answers, field), value, sizeof *(value))

void ledger_answer_verdict(const struct process_findings *process, uint32_t context,
                           enum ledger_verdict verdict) {
    uint32_t shown = (uint32_t)process->shown_count;
    uint8_t byte = (uint8_t)verdict;
    ANSWER(process, shown, &shown);
    answer(process, offsetof(struct ledger_answers, verdicts) + context, &byte, 1);
}

void ledger_answer_closed(const struct process_findings *process) {
    uint32_t closed = 1;
    ANSWER(process, closed, &closed);
}

void ledger_answer_search(const struct process_findings *process) {
    uint32_t searches = 0;
    size_t offset = offsetof(struct ledger, answers) + offsetof(struct ledger_answers, searches);
    if (!ledger_read(process, offset, &searches, sizeof searches))
        return;
    ANSWER(process, leaked_bytes, &process->last_sums.bytes);
    ANSWER(process, leaked_blocks, &process->last_sums.blocks);
    searches++;
    ANSWER(process, searches, &searches);
}

void ledger_answer_end(const struct process_findings *process, bool failed) {
    uint32_t end = failed ? 2 : 1;
    ANSWER(process, end, &end);
}
