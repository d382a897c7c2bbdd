// The file of counts (wire/call_counts.h): making it, parts for threads, ids and functions.
// For callgrind and cachegrind.
#ifndef QUERN_TOOLS_CALLGRIND_COUNTS_H
#define QUERN_TOOLS_CALLGRIND_COUNTS_H

#include <stddef.h>

#include "tools/callgrind/target/events.h"

void counts_start(void); // makes the file and hands it over
// Reads the options about what is collected when.
void counts_choose(void);
void counts_collect_jumps(void); // branches have ids
// Lets the supervisor write the counts to a file (or discard them), and waits until that is done.
void counts_dump(bool write, const char *why);
// The same because an option asks for it when this function is entered or left. The supervisor
// names the function.
void counts_dump_at(const char *option, uint32_t function);

// Hooks of the tools.
void counts_forking(void);
void counts_forked(void); // a file of the child's own, with nothing counted yet
void counts_vforking(void);
void counts_vforked(void); // the child is not counted
void counts_vfork_made(void);
void counts_thread_started(void);
void counts_thread_ended(void);
#define COUNTS_HOOKS                                                                               \
    .thread_started = counts_thread_started, .thread_ended = counts_thread_ended,                  \
    .forking = counts_forking, .forked = counts_forked, .vforking = counts_vforking,               \
    .vforked = counts_vforked, .vfork_made = counts_vfork_made

// Something found no room: the report says so.
void counts_incomplete(void);
void counts_caches(const struct counts_cache shapes[3]); // those that are simulated
void counts_count_event(enum counts_event);              // the event is counted
void *counts_reserve(size_t size);                       // memory, zeroed, to be unmapped

// The ids that belong to a function, one after the other; 0: no more. Callable at any time.
uint32_t counts_first_of(uint32_t function);
uint32_t counts_next_of(uint32_t id);
// A site at a function's first instruction, if there is one: of a skipped function that nobody
// calls.
uint32_t counts_home_of(uint32_t function);

// While code is translated, with the engine's lock held. 0 when there is no room.
uint32_t counts_function(uint64_t pc);
uint32_t counts_run(uint64_t pc, uint32_t function, const uint8_t *lengths, unsigned count);
uint32_t counts_site(uint64_t pc, uint32_t function, unsigned kind);
uint32_t counts_site_to_plt(uint64_t pc, uint32_t function); // a jump
uint32_t counts_branch(uint64_t pc, uint32_t function, uint64_t target, bool conditional);
// Three ids in a row, for the events of a system call.
uint32_t counts_system_call(uint64_t pc, uint32_t function, enum counts_kind);
// Two events at an instruction; `size` is the number of bytes accessed (or another number to keep).
// The second event has the next id. After the ids of misses follow, with --simulate-wb, the id of
// misses that evict a dirty line, and with --cacheuse the four ids of the costs of lines.
uint32_t counts_events(uint64_t pc, uint32_t function, enum counts_kind, enum counts_event first,
                       enum counts_event second, uint32_t size);

#endif
