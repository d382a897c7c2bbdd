// Fields of the calling thread's task by offset, for code that must not know the rest of it: quick
// functions of tools, and C code that shares fields with generated code (task_offsets.h). Safe
// everywhere, also in signal handlers.
#ifndef QUERN_ENGINE_TASK_FIELDS_H
#define QUERN_ENGINE_TASK_FIELDS_H

#include <stdint.h>
#include "engine/task_offsets.h"

struct task;
extern _Thread_local struct task current_task __attribute__((tls_model("local-exec")));

static inline uint64_t *task_field(unsigned offset) {
    return (uint64_t *)((char *)&current_task + offset);
}

#endif
