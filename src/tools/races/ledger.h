// What a process and the supervisor share while it runs: counts of findings, and verdicts. The
// file is the process's; the supervisor reads and writes it as a file, never by mapping.
#ifndef QUERN_RACES_LEDGER_H
#define QUERN_RACES_LEDGER_H

#include <stdint.h>

enum { RACES_CONTEXTS = 1 << 14 };

enum races_answer {
    ANSWER_NONE,
    ANSWER_SHOWN,
    ANSWER_SUPPRESSED, // or not wanted any more; a race nevertheless
    ANSWER_ATOMIC,     // no finding: threads synchronise by it
    ANSWER_STOP,       // shown, and the process is to end now
};

struct races_ledger {
    uint32_t contexts, reserved;
    uint64_t counts[RACES_CONTEXTS];
    // Written by the supervisor only.
    uint32_t end; // 0: not yet; 1: no errors; 2: errors
    uint32_t shown;
    uint8_t answers[RACES_CONTEXTS];
};

#endif
