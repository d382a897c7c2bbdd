// Loads a program into this process and runs it translated. Started by the supervisor, and by a
// followed exec of the target, with the command line of wire_start.h.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/maps.h"
#include "base/stack.h"
#include "engine/cache/block.h"
#include "engine/debug/debug.h"
#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/rlimits.h"
#include "engine/load/load.h"
#include "engine/memory/memory.h"
#include "engine/process.h"
#include "engine/run/run.h"
#include "engine/signal/signal.h"
#include "engine/report/modules.h"
#include "engine/sys/sys.h"
#include "engine/task.h"
#include "engine/translate/translate.h"
#include "wire/wire_start.h"
#include "wire/wire_target.h"

enum { STACK_LEAST = 1 << 20 }; // of the engine's own

static struct load_result loaded;

// Where the kernel has put something of ours into the target's areas, the target must not go.
static void look_at_own_mappings(void) {
    struct maps_reader reader;
    struct maps_mapping line;
    struct space_attributes attributes = {.tag = SPACE_ENGINE};
    if (!maps_reader_open(&reader, "/proc/self/maps"))
        return;
    while (maps_reader_next(&reader, &line))
        if (line.start < HIGH_END)
            space_map(&target_space, line.start, line.end, &attributes);
        else if (strcmp(line.path, "[vsyscall]") == 0)
            process.has_vsyscall = true;
    maps_reader_close(&reader);
}

static uint64_t stack_limit(void) {
    long wanted = wire_option_number("main-stacksize", 0);
    return wanted > 0 ? (uint64_t)wanted : rlimits_soft(WIRE_LIMIT_STACK);
}

static void report_loaded(const struct load_module *module) {
    struct space_range range;
    for (uint64_t at = module->start; space_next(&target_space, &at, module->end, &range);)
        if (range.attributes.prot & PROT_EXEC)
            report_module_path(range.start, range.end, range.attributes.offset,
                               range.attributes.prot, module->path);
}

static void load_target(const struct wire_start *start) {
    struct load_request request = {.space = &target_space,
                                   .path = start->path,
                                   .argv = start->argv,
                                   .envp = start->envp,
                                   .stack_limit = stack_limit()};
    int status = load_program(&request, &loaded);
    if (status != 0) {
        fprintf(stderr, "quern: %s: %s\n", loaded.culprit[0] ? loaded.culprit : start->path,
                loaded.message ? loaded.message : strerror(-status));
        _exit(status == -ENOENT ? 127 : 126);
    }
}

static void start_at_entry(void) {
    process.program = loaded.executable.path;
    process.dev = loaded.executable.dev;
    process.inode = loaded.executable.inode;
    process.brk_start = process.brk = loaded.brk;
    process.brk_limit = loaded.brk_end;
    process.stack_start = loaded.stack_start;
    process.stack_end = loaded.stack_end;
    if (loaded.has_interpreter) {
        process.loader_start = loaded.interpreter.start;
        process.loader_end = loaded.interpreter.end;
    }
    process.auxv = loaded.auxv;
    process.auxv_size = loaded.auxv_size;
    self->stack_start = loaded.stack_start;
    self->stack_end = loaded.stack_end;
    self->pc = loaded.entry;
    self->gpr[RSP] = loaded.rsp;
}

// The tool hears of what the loader has mapped as of what the target maps later.
static void announce_mappings(void) {
    struct space_range range;
    for (uint64_t at = 0; space_next(&target_space, &at, ADDRESS_END, &range);)
        if (range.attributes.tag != SPACE_ENGINE && range.attributes.tag != SPACE_BRK)
            hooks_mapped(range.start, range.end, range.attributes.prot);
}

// Says early what would otherwise end in some place that has no memory.
static void check_room(void) {
    enum { LEAST = 48 << 20 };
    void *room = mmap(NULL, LEAST, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        fatal("no memory for the engine%s", rlimits_advice());
    munmap(room, LEAST);
}

static struct wire_start start;

static void run(void) {
    files_hide();
    process.trace_syscalls = wire_option_yes("trace-syscalls");
    process.print_blocks = wire_option("debug-print-blocks");
    signal_trace = wire_option_yes("trace-signals");

    task_init_process();
    space_init(&target_space);
    look_at_own_mappings();
    hooks_init();
    load_target(&start);
    translate_place_cache();
    task_init_thread();
    signal_init_thread();
    self->is_leader = true;
    task_register(self);
    functions_init();
    debug_init();
    TOOL_HOOK(start);
    sys_init(run_task); // goes by what the tool wants to see
    start_at_entry();
    translate_place_vdso(loaded.vdso.copy, loaded.vdso.size, loaded.vdso.real);
    signal_init_process(); // from the hello on the supervisor may send one
    wire_send_hello(getpid(), getppid(), process.program, start.argv);
    order_raised();
    report_loaded(&loaded.executable);
    if (loaded.has_interpreter)
        report_loaded(&loaded.interpreter);
    load_announce(&loaded);
    announce_mappings();
    hooks_thread_start();
    rlimits_enforce();
    debug_start();
    run_task();
}

int main(int argc, char **argv) {
    if (!wire_start_read(argc, argv, &start))
        fatal("quern-engine is started by quern, not by hand");
    process.wire_fd = start.wire;
    process.config_fd = start.config;
    rlimits_init(start.limits);
    check_room();
    if (wire_config_load(process.config_fd) != 0)
        fatal("quern and quern-engine do not belong together: build or install both again");
    stack_call(STACK_LEAST, run);
}
