// Calls of functions of allocators that programs bring along. General registers only.
#include "engine/tool.h"
#include "tools/shared/allocators.h"
#include "tools/shared/arguments.h"

// ---- copies of texts ---------------------------------------------------------------------------

struct copy {
    uint64_t from, to, size, limit;
};

static void measure(void *argument) {
    struct copy *it = argument;
    for (it->size = 0; it->size < it->limit; it->size++)
        if (!*(const volatile char *)(it->from + it->size))
            return;
}

static void copy(void *argument) {
    const struct copy *it = argument;
    for (uint64_t i = 0; i < it->size; i++)
        *(volatile char *)(it->to + i) = *(const volatile char *)(it->from + i);
}

static void make_copy(struct allocator_call *call) {
    struct copy it = {.from = call->text, .size = call->size, .limit = call->limit};
    uint64_t fault;
    if (call->is_text && !tool_try(measure, &it, &fault)) {
        tool_run_itself(); // the target gets its signal
        return;
    }
    call->act = ALLOCATOR_ZEROED;
    call->size = it.size + call->is_text;
    allocators_hooks->other(call);
    it.to = tool_registers()[RESULT];
    if (it.to)
        tool_try(copy, &it, &fault);
}

// ---- all calls ---------------------------------------------------------------------------------

static bool is(const char *arguments, const char *letters) {
    while (*letters && *arguments == *letters)
        arguments++, letters++;
    return !*letters && (!*arguments || *arguments == '.');
}

// The hook for a function that is called as the standard one; NULL: there is none.
static allocators_hook *standard_hook(const struct allocator_function *function) {
    const char *arguments = function->arguments;
    switch (function->act) {
    case ALLOCATOR_MAKE:
        return is(arguments, "s")     ? allocators_hooks->malloc
               : is(arguments, "as")  ? allocators_hooks->memalign
               : is(arguments, "pas") ? allocators_hooks->posix_memalign
                                      : NULL;
    case ALLOCATOR_ZEROED:
        return is(arguments, "ns") ? allocators_hooks->calloc : NULL;
    case ALLOCATOR_RESIZE:
        return is(arguments, "bs") ? allocators_hooks->realloc : NULL;
    case ALLOCATOR_RELEASE:
        return is(arguments, "b") ? allocators_hooks->free : NULL;
    case ALLOCATOR_SIZE:
        return is(arguments, "b") ? allocators_hooks->malloc_usable_size : NULL;
    default:
        return NULL;
    }
}

void allocators_call(void *function) {
    allocators_hook *standard = standard_hook(function);
    uint64_t arguments[ARGUMENTS];
    struct allocator_call call;
    if (standard) {
        standard();
        return;
    }
    for (unsigned i = 0; i < ARGUMENTS; i++)
        arguments[i] = argument(i);
    allocator_read_call(function, arguments, &call);
    if (call.act == ALLOCATOR_INSIDE)
        return;
    if (call.act == ALLOCATOR_OWN || (call.is_in_heap && !call.block)) {
        allocators_has_own = true;
        tool_run_itself();
        return;
    }
    if (call.act == ALLOCATOR_COPY)
        make_copy(&call);
    else
        allocators_hooks->other(&call);
}
