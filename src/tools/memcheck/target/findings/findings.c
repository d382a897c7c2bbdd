#include "tools/memcheck/target/findings/findings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/tool.h"
#include "tools/memcheck/target/findings/contexts.h"
#include "tools/memcheck/target/findings/message.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/findings/ignored.h"
#include "tools/memcheck/target/findings/ledger.h"
#include "tools/shared/stacks.h"
#include "wire/wire.h"

// After this many findings of any kind, no more are counted (--error-limit).
#define MOST_FINDINGS 10000000

static unsigned callers = 12;
static bool limited = true;
static bool waits; // for the supervisor's verdict on each new context
static bool stops; // at the first one that is shown
static int error_status;
static char program_name[THREAD_NAME];
static _Thread_local int disabled;

static bool option_is(const char *name, const char *value) {
    const char *given = tool_option(name);
    return given && strcmp(given, value) == 0;
}

void findings_start(void) {
    const char *depth = tool_option("num-callers");
    if (depth)
        callers = (unsigned)strtoul(depth, NULL, 10);
    if (callers > FINDING_STACK_MAX)
        callers = FINDING_STACK_MAX;
    limited = !option_is("error-limit", "no") && !option_is("xml", "yes");
    stops = option_is("exit-on-first-error", "yes");
    waits = stops || option_is("gen-suppressions", "yes") || tool_waits_at_errors();
    const char *status = tool_option("error-exitcode");
    error_status = status ? atoi(status) : 0;
    ignored_start();
    ledger_start();
    contexts_start();
}

void findings_forked(void) {
    ledger_forked();
    contexts_forked();
}

// The first thread has the program's name.
void findings_thread_started(void) {
    if (!program_name[0])
        prctl(PR_GET_NAME, program_name);
}

void findings_disable(int by) {
    disabled += by;
}

void findings_thread_ended(void) {
    if (disabled > 0)
        tool_say("WARNING: exiting thread has error reporting disabled.\n"
                 "WARNING: possibly as a result of some mistake in the use\n"
                 "WARNING: of the VALGRIND_DISABLE_ERROR_REPORTING macros.");
}

// ---- adding ------------------------------------------------------------------------------------

// A thread has a name of its own if it is not the one that the program gave to all.
static void name_thread(struct finding_facts *facts) {
    char name[THREAD_NAME] = "";
    prctl(PR_GET_NAME, name);
    if (strcmp(name, program_name) != 0)
        memcpy(facts->thread_name, name, sizeof name);
}

static enum finding_origin origin_of(uint32_t origin) {
    if (!(origin & ~(uint32_t)ORIGIN_KIND))
        return MADE_UNKNOWN;
    switch (origin & ORIGIN_KIND) {
    case ORIGIN_STACK:
        return MADE_BY_STACK;
    case ORIGIN_REQUEST:
        return MADE_BY_CLIENT;
    case ORIGIN_SIGNAL:
        return MADE_BY_SIGNAL;
    default:
        return MADE_BY_HEAP;
    }
}

static size_t own_stack(const struct tool_stack_words *given, uint64_t *pcs, size_t most) {
    if (!given)
        return tool_stack(pcs, most);
    size_t count = given->count < most ? given->count : most;
    memcpy(pcs, given->pcs, count * sizeof *pcs);
    return count;
}

// Fills in the stacks and the names. The number of bytes that follow the head.
static size_t pack(struct finding_message *m) {
    uint64_t *pcs = (uint64_t *)m->rest;
    size_t used = own_stack(m->stack, pcs, callers);
    m->head.pc_counts[STACK_OF_FINDING] = (uint32_t)used;
    for (unsigned i = STACK_OF_MAKING; i < FINDING_STACKS; i++) {
        const uint64_t *kept;
        size_t count = m->stacks[i] ? stack_pcs(m->stacks[i], &kept) : 0;
        if (count > callers)
            count = callers;
        if (count)
            memcpy(pcs + used, kept, count * sizeof *pcs);
        m->head.pc_counts[i] = (uint32_t)count;
        used += count;
    }
    used *= sizeof *pcs;
    for (unsigned i = 0; i < 2; i++) {
        const char *name = m->names[i] ? m->names[i] : "";
        size_t size = strnlen(name, MESSAGE_NAME - 1);
        memcpy(m->rest + used, name, size);
        m->rest[used + size] = 0;
        used += size + 1;
    }
    return used;
}

static void stop_here(void) {
    syscall(SYS_exit_group, error_status);
    __builtin_unreachable();
}

void findings_stop_at_loss(void) {
    uint64_t bytes[LEAK_KINDS + 1], blocks[LEAK_KINDS + 1];
    if (!stops)
        return;
    findings_leak_totals(bytes, blocks); // waits for the supervisor
    if (ledger_has_failed())
        stop_here();
}

// After CONTEXTS_IN_DETAIL contexts have been shown, fewer callers are compared. The next finding
// depends on that count, so the process waits for the supervisor here.
static bool ends_detail(uint32_t context) {
    return context + 1 >= CONTEXTS_IN_DETAIL && ledger_shown() < CONTEXTS_IN_DETAIL;
}

static void send_finding(const struct new_finding *finding, uint32_t context) {
    struct finding_message m; // large: only what is sent is set
    m.head = (struct wire_finding){.context = context, .facts = finding->facts};
    m.names[0] = finding->names[0];
    m.names[1] = finding->names[1];
    m.stack = finding->stack;
    memset(m.stacks, 0, sizeof m.stacks);
    m.stacks[STACK_OF_MAKING] = finding->made;
    m.stacks[STACK_OF_FREEING] = finding->freed;
    m.stacks[STACK_OF_ORIGIN] = finding->origin & ~(uint32_t)ORIGIN_KIND;
    m.head.facts.origin = (uint8_t)origin_of(finding->origin);
    m.head.facts.thread = tool_thread_number();
    name_thread(&m.head.facts);
    if (finding->facts.place != PLACE_NONE)
        message_find_place(&m);
    size_t size = pack(&m);
    ledger_note_heap();
    tool_send(WIRE_FINDING, &m.head, sizeof m.head, m.rest, size);
    if (!waits && !ends_detail(context))
        return;
    enum ledger_verdict verdict = ledger_wait_verdict(context);
    if (verdict == VERDICT_STOP)
        stop_here();
    if (verdict == VERDICT_SHOWN)
        tool_error_shown(ledger_shown());
}

void findings_describe(uint64_t address) {
    struct finding_message m; // large: only what is sent is set
    m.head = (struct wire_finding){.facts = {.kind = FINDING_PLACE,
                                             .place = PLACE_UNKNOWN,
                                             .address = address,
                                             .thread = tool_thread_number()}};
    m.names[0] = m.names[1] = NULL;
    m.stack = NULL;
    memset(m.stacks, 0, sizeof m.stacks);
    message_find_place(&m);
    tool_send(WIRE_FINDING, &m.head, sizeof m.head, m.rest, pack(&m));
}

static void send_limit(void) {
    static bool is_sent;
    if (__atomic_exchange_n(&is_sent, true, __ATOMIC_RELAXED))
        return;
    struct wire_finding limit = {.facts = {.kind = FINDING_LIMIT, .thread = 1}};
    tool_send(WIRE_FINDING, &limit, sizeof limit, "\0", 2);
}

void findings_take(void *new_finding) {
    const struct new_finding *finding = new_finding;
    unsigned kind = finding->facts.kind;
    // An instruction that reads and writes is wrong once.
    if (kind == FINDING_WRITE)
        kind = FINDING_READ;
    if (disabled > 0 || (kind == FINDING_READ && ignored_access(finding->facts.address)) ||
        ledger_is_closed())
        return;
    if (limited && ledger_found() >= MOST_FINDINGS) {
        send_limit();
        return;
    }
    uint64_t pcs[CONTEXT_CALLERS] = {0};
    size_t count = own_stack(finding->stack, pcs, CONTEXT_CALLERS);
    bool is_new;
    uint32_t context = context_of(kind, finding->detail, pcs, count, &is_new);
    if (context == CONTEXT_NONE)
        return;
    ledger_count(context);
    if (is_new)
        send_finding(finding, context);
}

// ---- the end -----------------------------------------------------------------------------------

void findings_end(void) {
    struct heap_totals totals = heap_totals();
    struct wire_findings_end end = {.heap = {.allocations = totals.allocations,
                                             .frees = totals.frees,
                                             .bytes = totals.bytes,
                                             .live_blocks = totals.live_blocks,
                                             .live_bytes = totals.live_bytes}};
    ledger_note_heap();
    tool_send(WIRE_FINDINGS_END, &end, sizeof end, NULL, 0);
}

int findings_exit_status(int status) {
    return (error_status || stops) && ledger_wait_end() ? error_status : status;
}

unsigned long findings_count(void) {
    unsigned long count = 0;
    for (uint32_t i = 0; i < ledger_contexts(); i++)
        if (ledger_wait_verdict(i) != VERDICT_SUPPRESSED)
            count += ledger_count_of(i);
    return count;
}
