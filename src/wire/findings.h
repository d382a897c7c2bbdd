// What a tool that looks for errors shares with the supervisor beside single findings
// (wire/finding.h): losses, totals, the ledger.
//
// The messages carry the model of profile/findings (context, loss). Contexts are numbered from 0 in
// each process; a forked child continues its parent's numbers.
//
// The *ledger* is a memory file that the process shares with the supervisor: how often each context
// was seen, what the heap holds. It survives the process, so that nothing is lost when that is
// killed. In the other direction, it carries the supervisor's answers.
//
// Losses follow the WIRE_LEAKS that announces them, many in a packet. The supervisor reads and
// writes the ledger as a file, never by mapping: the process could cut it short.
#ifndef QUERN_WIRE_FINDINGS_H
#define QUERN_WIRE_FINDINGS_H

#include <stdint.h>

#include "profile/findings/leaks.h"
#include "wire/finding.h"

// ---- leaks ----

struct wire_leaks {
    uint64_t losses; // how many follow
    uint8_t full;    // or else only totals are wanted
    uint8_t at_end;
    uint8_t is_delta;
    uint8_t by_command; // hints name arguments of leak_check, not options
    uint8_t kinds;      // to show: a set of 1 << enum leak_kind; 0: as options say
    uint8_t reserved[3];
    uint64_t limit; // show at most this many losses, the largest; 0: all
    uint64_t heuristic_blocks[LEAK_HEURISTICS], heuristic_bytes[LEAK_HEURISTICS];
};

// A multiple of 8 bytes, pcs included; a packet holds several.
struct wire_loss {
    struct loss loss;
    uint32_t pc_count, reserved;
    uint64_t pcs[]; // where the blocks were allocated
};

struct heap_sums {
    uint64_t allocations, frees, bytes, live_blocks, live_bytes;
};

// The process is about to end and has said all.
struct wire_findings_end {
    struct heap_sums heap;
};

// ---- the ledger ----

#define LEDGER_MAGIC 0x52474c51u // "QLGR" in memory

enum { LEDGER_CONTEXTS = 1 << 16, LEDGER_THREADS = 1024 };

enum ledger_verdict {
    VERDICT_NONE,
    VERDICT_SHOWN,
    VERDICT_SUPPRESSED,
    VERDICT_STOP, // shown, and the process is to end now
};

// What threads have done with the heap; live is what was made less what was freed, over all of
// them.
struct ledger_heap {
    uint64_t allocations, frees, bytes, freed_bytes;
    // Calls that freed nothing, among them reallocs and the bytes these asked for. Valgrind counts
    // them in its summary.
    uint64_t failed_frees, failed_resizes, failed_resize_bytes;
    uint64_t reserved; // a cache line for each thread
};

struct ledger_answers {
    uint32_t shown;    // contexts that were shown
    uint32_t closed;   // 1: no more findings are wanted
    uint32_t searches; // leak searches that have been taken
    uint32_t end;      // 0: not yet; 1: no errors; 2: errors
    uint64_t leaked_bytes[LEAK_KINDS + 1], leaked_blocks[LEAK_KINDS + 1]; // and suppressed
    uint8_t verdicts[LEDGER_CONTEXTS];
};

struct ledger {
    uint32_t magic;
    uint32_t contexts; // numbers given away
    uint32_t full;     // 1: some contexts have found no number
    uint32_t reserved;
    uint64_t found;        // findings in all
    struct heap_sums heap; // as of the latest finding or end; 0s when ledger_heap is kept
    struct ledger_heap threads[LEDGER_THREADS];
    uint64_t counts[LEDGER_CONTEXTS];
    struct ledger_answers answers; // the supervisor writes this part only, the process never
};

// ---- behind the ledger, if --xtree-memory asks for it: the heap by place ----

enum site_value {
    SITE_LIVE_BYTES,
    SITE_LIVE_BLOCKS,
    SITE_BYTES, // ever allocated
    SITE_BLOCKS,
    SITE_FREED_BYTES, // here, wherever they were allocated
    SITE_FREED_BLOCKS,
    SITE_VALUES,
};

enum { LEDGER_SITES = 1 << 20, LEDGER_SITE_PCS = 1 << 24 };

// A stack that has allocated or freed.
struct ledger_site {
    uint64_t values[SITE_VALUES];
    uint32_t first_pc, pc_count; // pc_count is written last
    uint64_t reserved;           // a cache line for each
};

// Places come to the end and stay. The first is for what has found no room.
struct ledger_sites {
    uint32_t count, pc_count; // taken; may exceed what there is room for
    uint32_t reserved[14];
    struct ledger_site sites[LEDGER_SITES];
    uint64_t pcs[LEDGER_SITE_PCS];
};

struct ledger_and_sites {
    struct ledger ledger;
    _Alignas(4096) struct ledger_sites sites;
};

#endif
