// Limits for the heap of a run (--max-peak and its kin), and the numbers that are compared with
// them: those of a run that has ended, or of a file.
//
// One table: options, rules of results, and words derive from it. Not every source knows every
// number; the caller must refuse a limit whose number is not known. Supervisor and verbs.
#ifndef QUERN_REPORT_BUDGETS_H
#define QUERN_REPORT_BUDGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/massif/file.h"

enum budget_kind { BUDGET_PEAK, BUDGET_LEAKED, BUDGET_ALLOCATIONS, BUDGET_GROWTH, BUDGETS };

struct budget_word {
    const char *option; // without dashes
    const char *rule;   // of a result
    const char *what, *unit;
    const char *known_by; // who reports the number
};
extern const struct budget_word budget_words[BUDGETS];

struct budget {
    bool is_set;
    uint64_t most;
};

struct budget_numbers {
    bool is_known[BUDGETS];
    uint64_t value[BUDGETS];
};

bool budgets_any(const struct budget limits[BUDGETS]);
void budget_number(struct budget_numbers *numbers, enum budget_kind kind, uint64_t value);
// Whether the number is above its limit; *told, to be freed, is a message with both.
bool budget_exceeded(const struct budget *limit, enum budget_kind kind, uint64_t value,
                     char **told);

// What a massif.out knows: the useful heap at its peak and at the end, and how it grows, if its
// time is in milliseconds.
void budgets_massif(struct budget_numbers *numbers, const struct massif_file *file);

#endif
