// Part of supervisor/tool.h, for tools that record a process that was there before (--pid): the
// blocks that it has allocated by then, by size and holder (attach/census.h). They are looked for
// on a thread of this process's own, so that the recording goes on meanwhile.
#ifndef QUERN_SUPERVISOR_TOOL_BEFORE_H
#define QUERN_SUPERVISOR_TOOL_BEFORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct before;
struct symbols;

// Begins to look. With `is_asked` false it does not if the process would stand still for too long.
struct before *before_start(int pid, bool is_asked);
bool before_is_done(const struct before *before);
// Waits until it is done. Afterwards the functions below may be called.
void before_wait(struct before *before);
// Why nothing is known; NULL: it is. The text belongs to `before`.
const char *before_problem(const struct before *before);
// How long the process stood still, at most, and how often.
uint64_t before_pause(const struct before *before, unsigned *stops);
// All blocks, those of one holder after the other. `holder` is its name, or says that nothing leads
// to them; it lives as long as the call.
void before_blocks(struct before *before, struct symbols *symbols,
                   void (*block)(void *context, const char *holder, uint64_t address,
                                 uint64_t size),
                   void *context);
void before_free(struct before *before); // waits for it; NULL is fine

#endif
