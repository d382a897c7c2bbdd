// What a quick function (tool/code.h) reaches by itself: the thread's words, its state and the
// target's rsp. They are read whenever asked for.
#ifndef QUERN_ENGINE_TOOL_QUICK_H
#define QUERN_ENGINE_TOOL_QUICK_H

#include "engine/task_fields.h"

static inline uint64_t *tool_quick_words(void) {
    return task_field(TASK_TOOL_WORDS);
}

static inline void *tool_quick_state(void) {
    return *(void **)task_field(TASK_TOOL);
}

static inline uint64_t tool_quick_rsp(void) {
    return *(volatile uint64_t *)task_field(TASK_SPILL + 8 * 4);
}

#endif
