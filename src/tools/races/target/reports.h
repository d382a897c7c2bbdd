// Findings on their way to the supervisor, and its answers.
#ifndef QUERN_RACES_REPORTS_H
#define QUERN_RACES_REPORTS_H

#include "tools/races/target/races.h"

struct conflict {
    uint64_t address;
    unsigned size, kind;
    uint32_t stack; // of the access at hand
    uint32_t other_thread;
    struct races_event other;
    // The answer.
    enum verdict verdict;
    uint32_t context;
};

void reports_start(void);
void reports_forked(void);
void reports_end(void);
int reports_exit_status(int status);
void reports_judge(void *conflict);
void reports_count(uint32_t context); // once more. Plain
// Where a thread was created: shown before the first report that names it.
void reports_thread(uint32_t number, uint32_t stack);
// Two orders of the same locks, with the stacks of their acquisitions.
struct lock_order {
    const char *text;
    uint64_t held, taken;
    uint32_t observed[2], required[2];
};
void reports_order(const struct lock_order *);
// A finding without another side, once for each text and stack.
void reports_misuse(unsigned kind, const char *text, uint64_t object);

#endif
