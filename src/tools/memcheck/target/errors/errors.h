// Finding something wrong: called where it happens, in the target; the supervisor prints it.
//
// Every function takes the target's state from the thread that calls (stack, pc, thread number).
// An origin says where an undefined value was made: the number of a stack (stacks.h) with
// ORIGIN_STACK, ORIGIN_REQUEST or ORIGIN_SIGNAL added, 0 when unknown.
//
// Findings that are alike are one context (wire/findings.h): the first is described and sent, the
// others are counted in the ledger, without a lock. Any thread may call at any time, with no lock
// of its own held that heap_find takes.
#ifndef QUERN_MEMCHECK_ERRORS_H
#define QUERN_MEMCHECK_ERRORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/findings/leaks.h"

enum {
    ORIGIN_STACK = 1u << 30,
    ORIGIN_REQUEST = 2u << 30,
    ORIGIN_SIGNAL = 3u << 30,
    ORIGIN_KIND = 3u << 30,
};

enum parameter_fault { PARAMETER_REGISTER, PARAMETER_UNADDRESSABLE, PARAMETER_UNDEFINED };

void errors_start(void); // reads options; before any other thread
void errors_forked(void);
void errors_thread_started(void);
void error_access(uint64_t address, size_t size, bool write);
void error_condition(uint32_t origin);
void error_value(unsigned size, uint32_t origin);
void error_jump(uint64_t address);
void error_parameter(const char *name, enum parameter_fault, uint64_t address, uint32_t origin);
void error_client_check(uint64_t address, bool unaddressable, uint32_t origin);
void error_free(uint64_t address, const char *function); // no block begins there
void error_mismatched_free(uint64_t address);            // heap_find knows the block
void error_overlap(const char *function, uint64_t to, uint64_t from, size_t size, bool has_size);
void error_fishy(const char *function, const char *argument, int64_t value);
void error_pool(uint64_t address);
void error_core_memory(const char *what, uint64_t address); // a signal frame that does not fit

// ---- what the heap has done, where the supervisor sees it even if the process is killed ----

struct ledger_heap; // wire/findings.h
// Counters for one more heap, which nobody else writes; never NULL. With very many heaps, the last
// ones share theirs, and a killed process's totals may be a little too low.
struct ledger_heap *errors_heap_counters(void);

// ---- leaks (leaks.c finds them; the supervisor suppresses, prints and counts) ----

struct leak_search {
    bool full, at_end, is_delta;
    struct loss *records; // sorted as they are printed
    size_t record_count;
    uint64_t heuristic_blocks[LEAK_HEURISTICS], heuristic_bytes[LEAK_HEURISTICS];
    uint64_t bytes_searched;
};
// Allocates nothing and takes no lock of the C library: may be called while threads are stopped.
void errors_leaks(const struct leak_search *);
// What is left of the latest search when suppressions are applied: bytes and blocks for each
// enum leak_kind, then those suppressed. Waits for the supervisor.
void errors_leak_totals(uint64_t bytes[LEAK_KINDS + 1], uint64_t blocks[LEAK_KINDS + 1]);

// The heap's totals are sent with errors_end; HEAP SUMMARY and LEAK SUMMARY come from both.
void errors_end(void);
int errors_exit_status(int status); // what --error-exitcode makes of it; after errors_end

// For VALGRIND_COUNT_ERRORS and VALGRIND_DISABLE_ERROR_REPORTING (per thread).
unsigned long errors_counted(void);
void errors_disable(int by);

#endif
