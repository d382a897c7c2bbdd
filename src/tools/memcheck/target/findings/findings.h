// Adding findings (profile/findings/finding.h): called where something wrong happens, in the
// target.
//
// Every function takes the target's state from the thread that calls (stack, pc, thread number).
// An origin says where an undefined value was made: the number of a stack (stacks.h) with
// ORIGIN_STACK, ORIGIN_REQUEST or ORIGIN_SIGNAL added, 0 when unknown.
//
// The first finding of a context is sent to the supervisor. The others are counted in the ledger,
// without a lock. Any thread may call at any time, unless it holds a lock that heap_find takes.
// findings_add_* leave vector registers alone.
#ifndef QUERN_MEMCHECK_FINDINGS_H
#define QUERN_MEMCHECK_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/findings/finding.h"
#include "profile/findings/leaks.h"

struct tool_descriptor_fault; // engine/tool.h

enum {
    ORIGIN_STACK = 1u << 30,
    ORIGIN_REQUEST = 2u << 30,
    ORIGIN_SIGNAL = 3u << 30,
    ORIGIN_KIND = 3u << 30,
};

void findings_start(void); // reads options; before any other thread
void findings_forked(void);
void findings_thread_started(void);
void findings_add_access(uint64_t address, size_t size, bool write);
void findings_add_condition(uint32_t origin);
void findings_add_value(unsigned size, uint32_t origin);
void findings_add_jump(uint64_t address);
void findings_add_parameter(const char *name, enum finding_fault, uint64_t address,
                            uint32_t origin);
void findings_add_client_check(uint64_t address, enum finding_fault, uint32_t origin);
void findings_add_free(uint64_t address, const char *function); // no block begins there
void findings_add_mismatched_free(uint64_t address);            // heap_find knows the block
void findings_add_resize_to_zero(uint64_t address, const char *function);
// A bad alignment, or a size (not 0) that does not fit it; the remark begins with a space.
void findings_add_alignment(uint64_t alignment, uint64_t size, const char *remark);
void findings_add_zero_size(void);
// The functions are those that make and free such a block: "new/delete". An alignment of 0 is the
// usual one.
void findings_add_size_mismatch(uint64_t address, uint64_t size, const char *functions);
void findings_add_alignment_mismatch(uint64_t address, uint64_t made, uint64_t freed,
                                     const char *functions);
void findings_add_descriptor(const struct tool_descriptor_fault *);
void findings_add_overlap(const char *function, uint64_t to, uint64_t from, size_t size,
                          bool has_size);
void findings_add_fishy(const char *function, const char *argument, int64_t value);
void findings_add_pool(uint64_t address);
// Says what is at an address, for the user.
void findings_describe(uint64_t address);
void findings_add_core_memory(const char *what,
                              uint64_t address); // a signal frame that does not fit

// ---- leaks: the search finds them; the supervisor suppresses, prints and counts them ----

struct leak_search {
    bool full, at_end, is_delta, by_command;
    unsigned kinds; // struct leak_command
    uint64_t limit;
    struct loss *records; // sorted as they are printed
    size_t record_count;
    uint64_t heuristic_blocks[LEAK_HEURISTICS], heuristic_bytes[LEAK_HEURISTICS];
    uint64_t bytes_searched;
};
// Allocates nothing and takes no lock of the C library: may be called while threads are stopped.
void findings_send_losses(const struct leak_search *);
// The sums of the latest search after suppression: bytes and blocks of each enum leak_kind, then
// of suppressed losses. Waits for the supervisor.
void findings_leak_totals(uint64_t bytes[LEAK_KINDS + 1], uint64_t blocks[LEAK_KINDS + 1]);

// Sends the heap's totals.
void findings_end(void);
int findings_exit_status(int status); // what --error-exitcode makes of it; after findings_end

// For VALGRIND_COUNT_ERRORS and VALGRIND_DISABLE_ERROR_REPORTING (per thread).
unsigned long findings_count(void);
void findings_disable(int by);
void findings_thread_ended(void); // warns if they are still disabled
// With --exit-on-first-error: ends the process if the last leak search has shown a loss.
void findings_stop_at_loss(void);

#endif
