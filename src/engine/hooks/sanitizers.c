// Programs that are built with a sanitizer. Its runtime takes large parts of the address space, at
// fixed places. Where the tool needs these itself, it is better to say so before the runtime does.
#include <stddef.h>

#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/hooks/module.h"
#include "engine/space/place.h"

static const struct sanitizer {
    const char *function, *name, *option;
    bool needs_whole; // it accepts memory of the program in a few places only
} sanitizers[] = {
    {"__asan_init", "AddressSanitizer", "address", false},
    {"__tsan_init", "ThreadSanitizer", "thread", true},
    {"__msan_init", "MemorySanitizer", "memory", true},
};

static bool is_possible(const struct sanitizer *sanitizer) {
    if (tool->shadow_distance)
        return false;
    return !sanitizer->needs_whole || (!tool->memory_start && !is_in_one_piece());
}

void sanitizers_check(const struct module *program, const char *path) {
    if (!module_mentions(program, "san_init")) // most have none of them, and names can be many
        return;
    for (size_t i = 0; i < sizeof sanitizers / sizeof *sanitizers; i++) {
        const struct sanitizer *it = &sanitizers[i];
        if (!is_possible(it) && module_mentions(program, it->function))
            fatal(
                "%s is built with %s, which cannot run together with %s: use --tool=none, or build "
                "it without -fsanitize=%s",
                path, it->name, tool->name, it->option);
    }
}
