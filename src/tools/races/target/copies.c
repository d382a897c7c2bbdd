// memcpy and its kin. The C library's own would not be looked at, and cannot be watched either: the
// loader chooses one of several. Plain.
#include "base/x86.h"
#include "tools/races/target/copies.h"
#include "tools/races/target/races.h"
#include "tools/shared/arguments.h"

struct copy {
    uint64_t to, from, size;
};

static void copy(void *argument) {
    const struct copy *it = argument;
    uint64_t to = it->to, from = it->from, size = it->size;
    if (to - from >= size) {
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
        return;
    }
    for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t))
        *(volatile uint64_t *)(to + size - 8) = *(const volatile uint64_t *)(from + size - 8);
    for (; size; size--)
        *(volatile uint8_t *)(to + size - 1) = *(const volatile uint8_t *)(from + size - 1);
}

static void fill(void *argument) {
    const struct copy *it = argument;
    uint64_t to = it->to, size = it->size;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"((uint8_t)it->from) : "memory");
}

// The C library's own copies: its locks are not seen, and a block is not known before the allocator
// has returned.
static bool is_inner(void) {
    const struct races_thread *thread = races_thread();
    uint64_t stack_pointer = tool_register(RSP),
             returns = *(const volatile uint64_t *)stack_pointer;
    uint32_t count = (uint32_t)tool_thread_words()[RACES_RETURNS_WORD];
    return (returns >= races_libc_start && returns < races_libc_end) ||
           (count && thread->returns[count - 1].stack_pointer >= stack_pointer &&
            thread->returns[count - 1].is_allocation);
}

static void look(tool_function *what, const struct copy *it) {
    if (!races_has_threads || is_inner())
        return;
    if (what == copy)
        races_access(it->from, it->size, ACCESS_READ);
    races_access(it->to, it->size, ACCESS_WRITE);
}

static void perform(tool_function *what, const struct copy *it, uint64_t result) {
    uint64_t fault;
    struct copy own = *it;
    look(what, it);
    if (tool_try(what, &own, &fault))
        tool_registers()[RESULT] = result;
    else
        tool_raise();
}

void copies_memcpy(void) {
    struct copy it = {argument(0), argument(1), argument(2)};
    perform(copy, &it, it.to);
}

void copies_mempcpy(void) {
    struct copy it = {argument(0), argument(1), argument(2)};
    perform(copy, &it, it.to + it.size);
}

void copies_bcopy(void) {
    struct copy it = {argument(1), argument(0), argument(2)};
    perform(copy, &it, it.to);
}

void copies_memset(void) {
    struct copy it = {argument(0), argument(1), argument(2)};
    perform(fill, &it, it.to);
}
