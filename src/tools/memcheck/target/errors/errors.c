#include "tools/memcheck/target/errors/errors.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "engine/tool.h"
#include "tools/memcheck/target/errors/contexts.h"
#include "tools/memcheck/target/errors/describe.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/errors/ignored.h"
#include "tools/memcheck/target/errors/ledger.h"
#include "tools/memcheck/target/heap/stacks.h"
#include "wire/wire.h"

// So many findings of whatever kind are the last that are counted (--error-limit).
#define MOST_FINDINGS 10000000

static unsigned callers = 12;
static bool limited = true;
static bool waits; // for the supervisor's word on each new finding
static int error_status;
static char program_name[THREAD_NAME];
static _Thread_local int disabled;

static bool option_is(const char *name, const char *value) {
    const char *given = tool_option(name);
    return given && strcmp(given, value) == 0;
}

void errors_start(void) {
    const char *depth = tool_option("num-callers");
    if (depth)
        callers = (unsigned)strtoul(depth, NULL, 10);
    if (callers > FINDING_STACK_MAX)
        callers = FINDING_STACK_MAX;
    limited = !option_is("error-limit", "no") && !option_is("xml", "yes");
    waits = option_is("exit-on-first-error", "yes") || option_is("gen-suppressions", "yes");
    const char *status = tool_option("error-exitcode");
    error_status = status ? atoi(status) : 0;
    ignored_start();
    ledger_start();
    contexts_start();
}

void errors_forked(void) {
    ledger_forked();
    contexts_forked();
}

// The first thread has the program's name.
void errors_thread_started(void) {
    if (!program_name[0])
        prctl(PR_GET_NAME, program_name);
}

void errors_disable(int by) {
    disabled += by;
}

// ---- raising -----------------------------------------------------------------------------------

// A thread has a name of its own if it is not the one that the program gave to all.
static void name_thread(struct finding_facts *facts) {
    char name[THREAD_NAME] = "";
    prctl(PR_GET_NAME, name);
    if (strcmp(name, program_name) != 0)
        memcpy(facts->thread_name, name, sizeof name);
}

static size_t add_stack(struct description *d, struct wire_finding *head, unsigned which,
                        size_t used, const uint64_t *pcs, size_t count) {
    if (count > callers)
        count = callers;
    memcpy(d->variable + used, pcs, count * sizeof *pcs);
    head->pc_counts[which] = (uint32_t)count;
    return used + count * sizeof *pcs;
}

static void send(struct description *d, uint32_t context, const uint64_t *pcs, size_t count) {
    struct wire_finding head = {.context = context, .facts = d->facts};
    uint32_t kept[FINDING_STACKS] = {0, d->made_at, d->freed_at, d->origin};
    size_t used = add_stack(d, &head, STACK_OF_FINDING, 0, pcs, count);
    for (unsigned i = STACK_OF_MAKING; i < FINDING_STACKS; i++) {
        const uint64_t *its;
        size_t its_count = kept[i] ? stack_pcs(kept[i], &its) : 0;
        if (its_count)
            used = add_stack(d, &head, i, used, its, its_count);
    }
    for (unsigned i = 0; i < 2; i++) {
        const char *name = d->names[i] ? d->names[i] : "";
        size_t size = strnlen(name, DESCRIPTION_NAME - 1);
        memcpy(d->variable + used, name, size);
        d->variable[used + size] = 0;
        used += size + 1;
    }
    tool_send(WIRE_FINDING, &head, sizeof head, d->variable, used);
}

static void stop_here(void) {
    syscall(SYS_exit_group, error_status);
    __builtin_unreachable();
}

// Whether the next finding may be told apart otherwise, by how many were shown: that has to be
// known then, however late the supervisor is.
static bool ends_detail(uint32_t context) {
    return context + 1 >= CONTEXTS_IN_DETAIL && ledger_shown() < CONTEXTS_IN_DETAIL;
}

static void tell(struct description *d, uint32_t context) {
    uint64_t pcs[FINDING_STACK_MAX];
    size_t count = tool_stack(pcs, callers);
    d->facts.thread = tool_thread_number();
    name_thread(&d->facts);
    if (d->facts.place != PLACE_NONE)
        describe_address(d);
    ledger_note_heap();
    send(d, context, pcs, count);
    if ((waits || ends_detail(context)) && ledger_wait_verdict(context) == VERDICT_STOP)
        stop_here();
}

static void tell_limit(void) {
    static bool told;
    if (__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
        return;
    struct wire_finding limit = {.facts = {.kind = FINDING_LIMIT, .thread = 1}};
    tool_send(WIRE_FINDING, &limit, sizeof limit, "\0", 2);
}

// `detail` is what must be equal for findings to be alike, besides the kind and the callers.
static void raise_finding(struct description *d, uint64_t detail) {
    if (disabled > 0 || ledger_is_closed())
        return;
    if (limited && ledger_found() >= MOST_FINDINGS) {
        tell_limit();
        return;
    }
    uint64_t pcs[CONTEXT_CALLERS] = {0};
    size_t count = tool_stack(pcs, CONTEXT_CALLERS);
    bool is_new;
    // An instruction that reads and writes is wrong once.
    unsigned kind = d->facts.kind == FINDING_WRITE ? FINDING_READ : d->facts.kind;
    uint32_t context = context_of(kind, detail, pcs, count, &is_new);
    if (context == CONTEXT_NONE)
        return;
    ledger_count(context);
    if (is_new)
        tell(d, context);
}

static uint64_t detail_of(const char *text) {
    return hash_text(HASH_TEXT_START, text);
}

static void set_origin(struct description *d, uint32_t origin) {
    d->origin = origin & ~(uint32_t)ORIGIN_KIND;
    d->facts.origin = !d->origin                                 ? MADE_UNKNOWN
                      : (origin & ORIGIN_KIND) == ORIGIN_STACK   ? MADE_BY_STACK
                      : (origin & ORIGIN_KIND) == ORIGIN_REQUEST ? MADE_BY_CLIENT
                      : (origin & ORIGIN_KIND) == ORIGIN_SIGNAL  ? MADE_BY_SIGNAL
                                                                 : MADE_BY_HEAP;
}

// ---- the kinds ---------------------------------------------------------------------------------

#define DESCRIPTION(d, ...)                                                                        \
    struct description d;                                                                          \
    d.facts = (struct finding_facts){__VA_ARGS__};                                                 \
    d.names[0] = d.names[1] = NULL;                                                                \
    d.made_at = d.freed_at = d.origin = 0

void error_access(uint64_t address, size_t size, bool write) {
    if (ignored_access(address))
        return;
    DESCRIPTION(d, .kind = write ? FINDING_WRITE : FINDING_READ, .place = PLACE_UNKNOWN,
                .address = address, .size = size);
    raise_finding(&d, size);
}

void error_condition(uint32_t origin) {
    DESCRIPTION(d, .kind = FINDING_CONDITION);
    set_origin(&d, origin);
    raise_finding(&d, 0);
}

void error_value(unsigned size, uint32_t origin) {
    DESCRIPTION(d, .kind = FINDING_VALUE, .size = size);
    set_origin(&d, origin);
    raise_finding(&d, size);
}

void error_jump(uint64_t address) {
    DESCRIPTION(d, .kind = FINDING_JUMP, .place = PLACE_UNKNOWN, .address = address);
    raise_finding(&d, 0);
}

void error_parameter(const char *name, enum parameter_fault fault, uint64_t address,
                     uint32_t origin) {
    DESCRIPTION(d, .kind = FINDING_PARAMETER, .fault = (uint8_t)fault,
                .place = fault == PARAMETER_REGISTER ? PLACE_NONE : PLACE_UNKNOWN,
                .address = address);
    d.names[0] = name;
    set_origin(&d, origin);
    raise_finding(&d, detail_of(name) + (uint64_t)fault);
}

void error_client_check(uint64_t address, bool unaddressable, uint32_t origin) {
    DESCRIPTION(d, .kind = FINDING_CLIENT, .place = PLACE_UNKNOWN,
                .fault = unaddressable ? FAULT_UNADDRESSABLE : FAULT_UNDEFINED, .address = address);
    set_origin(&d, origin);
    raise_finding(&d, unaddressable);
}

void error_free(uint64_t address, const char *function) {
    DESCRIPTION(d, .kind = FINDING_FREE, .place = PLACE_UNKNOWN, .address = address);
    d.names[0] = function;
    raise_finding(&d, 0);
}

void error_mismatched_free(uint64_t address) {
    DESCRIPTION(d, .kind = FINDING_MISMATCHED_FREE, .place = PLACE_UNKNOWN, .address = address);
    raise_finding(&d, 0);
}

void error_overlap(const char *function, uint64_t to, uint64_t from, size_t size, bool has_size) {
    DESCRIPTION(d, .kind = FINDING_OVERLAP, .fault = has_size, .address = to,
                .value = (int64_t)from, .size = size);
    d.names[0] = function;
    raise_finding(&d, 0);
}

void error_fishy(const char *function, const char *argument, int64_t value) {
    DESCRIPTION(d, .kind = FINDING_FISHY, .value = value);
    d.names[0] = function;
    d.names[1] = argument;
    raise_finding(&d, detail_of(function) * 31 + detail_of(argument));
}

void error_pool(uint64_t address) {
    DESCRIPTION(d, .kind = FINDING_POOL, .place = PLACE_UNKNOWN, .address = address);
    raise_finding(&d, 0);
}

void error_core_memory(const char *what, uint64_t address) {
    DESCRIPTION(d, .kind = FINDING_CORE, .address = address);
    d.names[0] = what;
    raise_finding(&d, detail_of(what));
}

// ---- the end -----------------------------------------------------------------------------------

void errors_end(void) {
    struct heap_totals totals = heap_totals();
    struct wire_findings_end end = {.heap = {.allocations = totals.allocations,
                                             .frees = totals.frees,
                                             .bytes = totals.bytes,
                                             .live_blocks = totals.live_blocks,
                                             .live_bytes = totals.live_bytes}};
    ledger_note_heap();
    tool_send(WIRE_FINDINGS_END, &end, sizeof end, NULL, 0);
}

int errors_exit_status(int status) {
    return error_status && ledger_wait_end() ? error_status : status;
}

unsigned long errors_counted(void) {
    unsigned long count = 0;
    for (uint32_t i = 0; i < ledger_contexts(); i++)
        if (ledger_wait_verdict(i) != VERDICT_SUPPRESSED)
            count += ledger_count_of(i);
    return count;
}
