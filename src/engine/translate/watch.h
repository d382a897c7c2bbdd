// Memory that gdb watches. While there is some, translated code calls a function before each access
// to memory, which compares addresses, and one at the head of each block, which compares values:
// the kernel and functions of the tool's own write, too.
//
// Changes need all other threads stopped. Blocks that were translated before are not right any more
// (translate_start_over).
#ifndef QUERN_ENGINE_TRANSLATE_WATCH_H
#define QUERN_ENGINE_TRANSLATE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct builder;
struct tool_insn;

enum watch_kind { WATCH_WRITES, WATCH_READS, WATCH_ACCESSES };

struct watch {
    uint64_t start, size;
    enum watch_kind kind;
};

extern unsigned watch_count;
// False: there is no room, or the range is too large.
bool watch_add(const struct watch *);
bool watch_remove(const struct watch *);
void watch_remove_all(void);

// The access of the calling thread that was noted last; its watch. NULL: none.
const struct watch *watch_take_hit(void);
// Values as they are now count as seen.
void watch_renew(void);

// While a block is translated.
void watch_insert(struct builder *, const struct tool_insn *, bool is_first);

#endif
