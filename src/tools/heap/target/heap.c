// The tools heap and massif on the engine; heap.h tells how.
#include "tools/heap/target/heap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/allocators.h"
#include "tools/tools.h"
#include "wire/wire.h"

struct heap_options heap_choices;

static bool is_yes(const char *name) {
    const char *value = tool_option(name);
    return value && strcmp(value, "yes") == 0;
}

static unsigned number(const char *name, unsigned otherwise) {
    const char *value = tool_option(name);
    return value ? (unsigned)strtoul(value, NULL, 10) : otherwise;
}

static void on_start(void) {
    const char *unit = tool_option("time-unit"), *heap = tool_option("heap");
    heap_choices.pages = is_yes("pages-as-heap");
    heap_choices.blocks = !heap_choices.pages && !(heap && strcmp(heap, "no") == 0);
    heap_choices.stacks = is_yes("stacks");
    heap_choices.instructions = unit && strcmp(unit, "i") == 0;
    heap_choices.follow_children = is_yes("trace-children");
    heap_choices.follow_forks = heap_choices.follow_children || is_yes("follow-forks");
    heap_choices.depth = number("recorder-depth", 64);
    heap_choices.admin = number("heap-admin", 8);
    calls_start();
}

// ---- modules ----
//
// The first one is told after the program has been announced, and before the supervisor hears of
// it: from then on there is an area. A forked child tells its modules again.

static struct module {
    uint64_t start, end, offset;
    char *path;
    struct module *next;
} * modules;

static pthread_mutex_t modules_lock = PTHREAD_MUTEX_INITIALIZER;

static void on_module(uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    struct module *module = malloc(sizeof *module);
    if (!modules)
        tell_open();
    if (!module)
        return;
    pthread_mutex_lock(&modules_lock);
    *module = (struct module){start, end, offset, strdup(path), modules};
    modules = module;
    pthread_mutex_unlock(&modules_lock);
}

static void on_unmapped(uint64_t start, uint64_t end) {
    pthread_mutex_lock(&modules_lock);
    for (struct module **at = &modules; *at;) {
        struct module *module = *at;
        if (module->start >= end || module->end <= start) {
            at = &module->next;
            continue;
        }
        *at = module->next;
        free(module->path);
        free(module);
    }
    pthread_mutex_unlock(&modules_lock);
}

bool heap_is_loader(uint64_t pc) {
    bool is_loader = false;
    pthread_mutex_lock(&modules_lock);
    for (const struct module *module = modules; module; module = module->next) {
        const char *slash = module->path ? strrchr(module->path, '/') : NULL;
        if (pc >= module->start && pc < module->end)
            is_loader = slash && strncmp(slash + 1, "ld-linux", strlen("ld-linux")) == 0;
    }
    pthread_mutex_unlock(&modules_lock);
    return is_loader;
}

static void tell_modules(void) {
    for (const struct module *module = modules; module; module = module->next) {
        struct wire_module_map map = {module->start, module->end, module->offset, 5, 0};
        if (module->path)
            tool_send(WIRE_MODULE_MAP, &map, sizeof map, module->path, strlen(module->path) + 1);
    }
}

// ---- events ----

static void on_thread_started(void) {
    static bool begun;
    ticks_thread_started();
    tell_thread_started();
    if (!__atomic_exchange_n(&begun, true, __ATOMIC_SEQ_CST) && heap_choices.pages)
        pages_begin();
}

static void on_thread_ended(void) {
    tell_thread_ended();
    ticks_thread_ended();
}

static void on_forking(void) {
    pthread_mutex_lock(&modules_lock);
    room_lock();
    ticks_forking();
    tell_forking();
}

static void on_fork_made(void) {
    tell_fork_made();
    ticks_fork_made();
    room_unlock();
    pthread_mutex_unlock(&modules_lock);
}

static void on_forked(void) {
    tell_forked();
    ticks_forked();
    room_unlock();
    pthread_mutex_unlock(&modules_lock);
    if (!heap_choices.follow_forks)
        return;
    tell_open();
    if (!heap_choices.follow_children)
        tell_provisional();
    tell_modules();
    tell_thread_started();
}

static void on_end(void) {
    tell_thread_ended();
    tell_ended();
    if (heap_choices.blocks && !calls_found())
        tool_say("No function of an allocator was found by name in the program (stripped?):\n"
                 "only memory that it maps itself is known");
}

static void on_system_call(long number, const uint64_t arguments[6]) {
    ticks_stacks();
    pages_before_system_call(number, arguments);
}

#define HOOKS                                                                                      \
    .thread_size = sizeof(struct heap_thread), .symbols = calls_symbols,                           \
    .allocator_function = allocators_call, .allocator_modules = allocators_family_modules,         \
    .start = on_start, .end = on_end, .thread_started = on_thread_started,                         \
    .thread_ended = on_thread_ended, .forking = on_forking, .fork_made = on_fork_made,             \
    .forked = on_forked, .module = on_module, .unmapped = on_unmapped,                             \
    .before_system_call = on_system_call, .after_system_call = pages_after_system_call,            \
    .request = said_request

const struct tool tool_heap = {.name = "heap", HOOKS};

const struct tool tool_massif = {
    .name = "massif",
    HOOKS,
    .exit_functions = allocators_exit_functions,
    .block = ticks_block,
    .instruction = ticks_instruction,
    .block_end = ticks_block_end,
};
