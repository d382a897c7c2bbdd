#include "tools/memcheck/target/debugger.h"
#include "tools/memcheck/target/memcheck.h"

#include <stdlib.h>
#include <string.h>

#include "base/x86.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/shadow/frames.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/insert/insert.h"
#include "tools/memcheck/target/shadow/origins.h"
#include "tools/memcheck/target/leaks/leaks.h"
#include "tools/memcheck/target/findings/ledger.h"
#include "tools/memcheck/target/functions/quick.h"
#include "tools/memcheck/target/monitor.h"
#include "tools/memcheck/target/requests.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/memcheck/target/heap/sites.h"
#include "tools/memcheck/target/syscalls.h"
#include "tools/memcheck/target/track/track.h"
#include "tools/shared/allocators.h"
#include "tools/tools.h"

enum { PAGE = 4096 };

static bool is_option(const char *name, const char *value) {
    const char *given = tool_option(name);
    return given && strcmp(given, value) == 0;
}

static void start(void) {
    const char *frame = tool_option("max-stackframe");
    shadow_undefined_values = track_value_errors = !is_option("undef-value-errors", "no");
    track_origins = is_option("track-origins", "yes");
    track_partial_loads = !is_option("partial-loads-ok", "no");
    if (frame)
        memcheck_max_frame = strtoul(frame, NULL, 0);
    findings_start();
    heap_make_counters = ledger_heap_counters;
    track_start();
    checks_start();
    if (track_origins)
        origins_start();
    sites_start();
    heap_start();
    leaks_start();
}

static void end(void) {
    findings_thread_ended();
    leaks_check_at_end();
    findings_end();
}

static void forking(void) {
    leaks_forking();
    heap_forking();
    ledger_forking();
}

static void fork_made(void) {
    ledger_fork_made();
    heap_fork_made();
    leaks_fork_made();
}

static void forked(void) {
    heap_forked();
    findings_forked();
    requests_forked();
    leaks_forked();
}

// A thread's stack below its stack pointer is free to be used and undefined.
static void thread_started(void) {
    findings_thread_started();
    uint64_t first, last;
    memcheck_thread()->stack_reach = tool_register(RSP);
    if (tool_own_stack(&first, &last))
        shadow_make_undefined(first, tool_register(RSP) - RED_ZONE - first);
    frames_thread_started();
}

static void thread_ended(void) {
    findings_thread_ended();
    frames_thread_ended();
    memcheck_forget_signals();
    origins_thread_ended();
    heap_thread_ended();
}

static void module(uint64_t first, uint64_t last, uint64_t offset, const char *path) {
    const char *slash = strrchr(path, '/');
    if (strncmp(slash ? slash + 1 : path, "ld-", 3) == 0 && !track_loader_start) {
        track_loader_start = first;
        track_loader_end = last;
    }
}

// What a frame takes from below the end of the stack is the function's own: not the access is
// wrong.
static bool is_overflow(uint64_t address) {
    uint64_t first, last;
    if (!tool_own_stack(&first, &last) || address >= first ||
        first - address > memcheck_max_frame || address < tool_register(RSP) - RED_ZONE)
        return false;
    tool_say("Stack overflow in thread #%d: can't grow stack to 0x%lx", tool_thread_number(),
             address & ~(uint64_t)(PAGE - 1));
    return true;
}

// Looking at the instruction again as if the page were not addressable says what it did there.
// A store changes the shadow before memory. Where there is no memory, nothing has been stored.
static void forget_missing_page(uint64_t address) {
    enum { PAGE = 4096 };
    uint64_t start = address & ~(uint64_t)(PAGE - 1);
    if (tool_has_shadow(start, PAGE))
        tool_shadow_clear(start, start + PAGE);
}

static void faulted(const struct insn *insn, uint64_t address, bool is_known) {
    tool_lock_code(); // guards what is prepared
    const struct track *prepared = track_prepare(insn->pc, insn->bytes, &insn->z, insn->operands);
    tool_unlock_code();
    if (prepared && !(is_known && is_overflow(address))) {
        shadow_assume_missing(address, is_known);
        track_run(prepared);
        shadow_assume_nothing();
    }
    if (is_known)
        forget_missing_page(address);
    memcheck_thread()->registers.any_hidden = true; // at least it may be
}

static void stored(uint64_t address, uint64_t size) {
    tool_shadow_clear(address, address + size);
}

// Memory that is in use but holds no code is a matter of the program's own.
static void jumped_nowhere(uint64_t address, bool is_mapped) {
    uint64_t bad;
    if (!is_mapped || shadow_check_addressable(address, 1, &bad) != SHADOW_FINE)
        findings_add_jump(address);
}

const struct tool tool_memcheck = {
    .name = "memcheck",
    .thread_size = sizeof(struct memcheck_thread),
    .register_size = sizeof(struct shadow_registers),
    .shadow_distance = SHADOW_DISTANCE,
    .plain_hooks = true,
    .symbols = heap_symbols,
    .quick_hook = quick_hook,
    .exit_functions = allocators_exit_functions,
    .allocator_function = allocators_call,
    .allocator_modules = allocators_family_modules,
    .start = start,
    .end = end,
    .exit_status = findings_exit_status,
    .forking = forking,
    .fork_made = fork_made,
    .forked = forked,
    .head = checks_head,
    .before = checks_before,
    .operand = checks_operand,
    .after = checks_after,
    .returned = checks_returned,
    .replaced = checks_replaced,
    .block_end = checks_end,
    .flushed = checks_flushed,
    .thread_set = checks_thread_set,
    .register_set = checks_register_set,
    .register_shadow = debugger_register_shadow,
    .stored = stored,
    .moved = shadow_moved,
    .thread_started = thread_started,
    .thread_ended = thread_ended,
    .signal_delivered = memcheck_signal_delivered,
    .signal_returned = memcheck_signal_returned,
    .module = module,
    .faulted = faulted,
    .before_system_call = memcheck_before_system_call,
    .after_system_call = memcheck_after_system_call,
    .jumped_nowhere = jumped_nowhere,
    .descriptor_fault = findings_add_descriptor,
    .request = requests_answer,
    .monitor = monitor_perform,
    .monitor_help = monitor_help,
};
