// What a program says by include/quern/heap.h, and blocks that it declares by valgrind.h.
#include "tools/heap/target/heap.h"
#include "wire/heap_requests.h"

enum { BLOCK_ALLOCATED = 0x1301, BLOCK_FREED = 0x1302, BLOCK_RESIZED = 0x130b };

static void mark(uint64_t kind, uint64_t text) {
    char name[WIRE_HEAP_NAME_MAX];
    size_t size = 0;
    while (size < sizeof name && tool_read(&name[size], text + size, 1) == 0 && name[size])
        size++;
    tell_mark((unsigned)kind, name, size);
}

static void resize(uint64_t from, uint64_t to, uint64_t size) {
    uint32_t stack = tell_stack(0);
    tell_resize_began(from);
    tell_resize_ended(to, size, stack);
}

static bool ask(uint64_t place) {
    uint64_t answers[WIRE_HEAP_ANSWERS];
    return tell_ask(answers) && tool_write(place, answers, sizeof answers) == 0;
}

bool said_request(const uint64_t words[6], uint64_t *result) {
    if (!heap_choices.blocks)
        return false;
    *result = 1;
    switch (words[0]) {
    case HEAP_REQUEST_LISTENS:
        return true;
    case HEAP_REQUEST_MARK:
        mark(words[1], words[2]);
        return true;
    case HEAP_REQUEST_ASK:
        return ask(words[1]);
    case HEAP_REQUEST_ALLOCATED:
        tell_allocated(words[1], words[2], tell_stack(0));
        return true;
    case HEAP_REQUEST_FREED:
        tell_freed(words[1]);
        return true;
    case HEAP_REQUEST_RESIZED:
        resize(words[1], words[2], words[3]);
        return true;
    case HEAP_REQUEST_CHUNK:
        tell_chunk(words[1], words[2]);
        return true;
    case BLOCK_ALLOCATED:
        tell_allocated(words[1], words[2], tell_stack(0));
        return false;
    case BLOCK_FREED:
        tell_freed(words[1]);
        return false;
    case BLOCK_RESIZED:
        resize(words[1], words[1], words[3]);
        return false;
    default:
        return false;
    }
}
