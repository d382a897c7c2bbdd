// Memory that the target gets by system calls: of its own accord, or, if pages count, all of it.
#include "tools/heap/target/heap.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE 4096ul

static uint64_t last_break; // 0: not known yet

static uint64_t page_up(uint64_t value) {
    return (value + PAGE - 1) & ~(PAGE - 1);
}

// Of the stack only what is in use: the rest is room to grow into.
void pages_begin(void) {
    struct tool_mapping mapping;
    for (uint64_t at = 0; tool_mapping_at(at, &mapping); at = mapping.end) {
        uint64_t start = mapping.is_stack ? tool_register(4) & ~(PAGE - 1) : mapping.start;
        if (!mapping.is_brk)
            tell_mapped(start, mapping.end - start,
                        mapping.is_file ? WIRE_HEAP_FILE : WIRE_HEAP_ANONYMOUS, 0);
    }
}

// What is about to go is told before somebody else can get the same addresses.
void pages_before_system_call(long number, const uint64_t arguments[6]) {
    bool is_sound = arguments[0] % PAGE == 0 && arguments[1];
    if ((number == SYS_munmap || number == SYS_mremap) && is_sound)
        tell_unmapped(arguments[0], page_up(arguments[1]));
}

static void mapped(const uint64_t arguments[6], uint64_t start) {
    uint64_t flags = arguments[3];
    // Stacks of threads are the C library's, and libraries the dynamic linker's.
    if (!heap_choices.pages && (flags & MAP_STACK || heap_is_loader(tool_pc())))
        return;
    tell_mapped(start, page_up(arguments[1]),
                flags & MAP_ANONYMOUS ? WIRE_HEAP_ANONYMOUS : WIRE_HEAP_FILE, tell_stack(0));
}

static void moved(const uint64_t arguments[6], long result) {
    bool failed = result < 0 && result > -(long)PAGE;
    if (arguments[0] % PAGE == 0 && arguments[1])
        tell_mapped(failed ? arguments[0] : (uint64_t)result,
                    page_up(failed ? arguments[1] : arguments[2]), WIRE_HEAP_MOVED, tell_stack(0));
}

static void break_moved(uint64_t to) {
    uint64_t from = last_break;
    last_break = to;
    if (heap_choices.pages) {
        from = page_up(from);
        to = page_up(to);
    }
    if (from && to > from)
        tell_mapped(from, to - from, WIRE_HEAP_BREAK, tell_stack(0));
    else if (from && to < from)
        tell_unmapped(to, from - to);
}

void pages_after_system_call(long number, const uint64_t arguments[6], long result) {
    bool failed = result < 0 && result > -(long)PAGE;
    if (number == SYS_mmap && !failed)
        mapped(arguments, (uint64_t)result);
    else if (number == SYS_mremap)
        moved(arguments, result);
    else if (number == SYS_brk && !failed)
        break_moved((uint64_t)result);
}
