#include "tools/memcheck/target/functions/collectors.h"

#include "base/x86.h"
#include "tools/memcheck/target/shadow/shadow.h"

enum { MOST = 1 << 30 };

// ---- Go ----------------------------------------------------------------------------------------
//
// scanstack(g) looks for pointers, also in frames of which it is not known what they hold;
// copystack(g) moves a stack and mends pointers into it, also those of variables that are dead. A
// goroutine, g, begins with the bounds of its stack; its stack pointer is kept further on.

static bool find_stack(uint64_t g, uint64_t *start, uint64_t *end) {
    struct {
        uint64_t start, end, others[5], pointer;
    } head;
    if (tool_read(&head, g, sizeof head))
        return false;
    *start = head.start;
    *end = head.end;
    return head.start < head.end && head.end - head.start <= MOST &&
           head.pointer - head.start <= head.end - head.start;
}

static void on_stack_of_goroutine(void) {
    uint64_t start, end, pushed;
    bool is_found = find_stack(tool_register(RAX), &start, &end);
    // Before Go 1.17, arguments were passed on the stack.
    if (!is_found && tool_read(&pushed, tool_register(RSP) + 8, sizeof pushed) == 0)
        is_found = find_stack(pushed, &start, &end);
    if (is_found)
        shadow_make_defined(start, end - start);
}

const struct tool_symbol collector_symbols[] = {
    {TOOL_ANY_PROGRAM, "runtime.scanstack", TOOL_WATCH, on_stack_of_goroutine, NULL},
    {TOOL_ANY_PROGRAM, "runtime.copystack", TOOL_WATCH, on_stack_of_goroutine, NULL},
    {0},
};
