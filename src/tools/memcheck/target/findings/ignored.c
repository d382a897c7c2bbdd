#include "tools/memcheck/target/findings/ignored.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/x86.h"
#include "engine/tool.h"
#include "tools/memcheck/target/findings/probe.h"
#include "tools/memcheck/target/requests.h"

// How far below the stack pointer old compilers wrote.
enum { OLD_COMPILER_BYTES = 1024, MOST_RANGES = 32 };

static struct { uint64_t start, end; } ranges[MOST_RANGES];
static size_t range_count;
static uint64_t nearest, farthest; // below the stack pointer; 0: nothing is ignored there

// The numbers of "A-B"; false: it is something else.
static bool read_range(const char *text, uint64_t *first, uint64_t *last, const char **end) {
    char *stop;
    *first = strtoull(text, &stop, 0);
    if (stop == text || *stop != '-')
        return false;
    text = stop + 1;
    *last = strtoull(text, &stop, 0);
    *end = stop;
    return stop != text;
}

void ignored_start(void) {
    const char *at = tool_option("ignore-ranges");
    uint64_t first, last;
    while (at && range_count < MOST_RANGES && read_range(at, &first, &last, &at)) {
        ranges[range_count].start = first;
        ranges[range_count++].end = last;
        at = *at == ',' ? at + 1 : NULL;
    }
    at = tool_option("ignore-range-below-sp");
    if (at && read_range(at, &first, &last, &at)) {
        farthest = first > last ? first : last;
        nearest = first > last ? last : first;
    }
    at = tool_option("workaround-gcc296-bugs");
    if (at && strcmp(at, "yes") == 0) {
        nearest = 1;
        farthest = OLD_COMPILER_BYTES;
    }
}

bool ignored_access(uint64_t address) {
    for (size_t i = 0; i < range_count; i++)
        if (address >= ranges[i].start && address <= ranges[i].end)
            return true;
    uint64_t rsp = tool_register(RSP);
    if (farthest && address < rsp && rsp - address >= nearest && rsp - address <= farthest)
        return true;
    return requests_ignore(address) || probe_is_at(address);
}
