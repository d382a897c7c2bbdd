// --trace-malloc: a line for each call of a function that a tool stands in for.
//
// A hook learns neither its name nor that it is traced, so each has a function in front of it that
// knows its number. General registers only.
#include <string.h>

#include "engine/tool.h"
#include "tools/shared/allocators.h"
#include "tools/shared/arguments.h"
#include "tools/shared/trace_calls.h"

static struct {
    const char *name;
    allocators_hook *hook;
} traced[ALLOCATORS_SYMBOLS];

struct call {
    const char *name;
    uint64_t arguments[3];
};

static void say(void *argument) {
    const struct call *call = argument;
    bool frees = strstr(call->name, "free") || strncmp(call->name, "_Zd", 3) == 0;
    uint64_t result = tool_registers()[RESULT];
    if (frees)
        tool_debug("%s(0x%lX)", call->name, call->arguments[0]);
    else if (strstr(call->name, "realloc"))
        tool_debug("%s(0x%lX, %lu) = 0x%lX", call->name, call->arguments[0], call->arguments[1],
                   result);
    else if (strcmp(call->name, "malloc") == 0 || strncmp(call->name, "_Zn", 3) == 0)
        tool_debug("%s(%lu) = 0x%lX", call->name, call->arguments[0], result);
    else
        tool_debug("%s(%lu, %lu) = 0x%lX", call->name, call->arguments[0], call->arguments[1],
                   result);
}

static void run_traced(unsigned number) {
    struct call call = {traced[number].name, {argument(0), argument(1), argument(2)}};
    traced[number].hook();
    tool_with_vectors(say, &call);
}

#define ONE(n)                                                                                     \
    static void run_##n(void) {                                                                    \
        run_traced(n);                                                                             \
    }
#define EIGHT(X, t) X(t##0) X(t##1) X(t##2) X(t##3) X(t##4) X(t##5) X(t##6) X(t##7)
#define ALL(X)      EIGHT(X, 00) EIGHT(X, 01) EIGHT(X, 02) EIGHT(X, 03) EIGHT(X, 04) EIGHT(X, 05)
ALL(ONE) // octal numbers

static allocators_hook *const runners[] = {
#define NAME(n) run_##n,
    ALL(NAME)
#undef NAME
};

_Static_assert(sizeof runners / sizeof *runners >= ALLOCATORS_SYMBOLS, "");

allocators_hook *trace_calls_of(unsigned number, const char *name, allocators_hook *hook) {
    const char *option = tool_option("trace-malloc");
    if (!option || strcmp(option, "yes") != 0)
        return hook;
    traced[number].name = name;
    traced[number].hook = hook;
    return runners[number];
}
