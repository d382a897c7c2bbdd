#include "tools/races/target/reports.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "tools/races/ledger.h"
#include "tools/shared/stacks.h"
#include "wire/findings.h"
#include "wire/wire.h"

enum { WAIT_STEPS = 300000 }; // a minute

static struct races_ledger *ledger;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int error_status;
static unsigned callers = 12;

static struct races_ledger *make_ledger(void) {
    int fd = memfd_create("quern-races", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct races_ledger *made = MAP_FAILED;
    if (fd >= 0 && fd_set_size(fd, sizeof *made) &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (made == MAP_FAILED)
        tool_give_up("helgrind: cannot make a file for the error counts");
    tool_give_ledger(fd);
    close(fd);
    return made;
}

void reports_start(void) {
    const char *status = tool_option("error-exitcode"), *depth = tool_option("num-callers");
    error_status = status ? atoi(status) : 0;
    if (depth && atoi(depth) > 0)
        callers = (unsigned)atoi(depth);
    ledger = make_ledger();
}

// The child begins with the counts and answers of its parent.
void reports_forked(void) {
    struct races_ledger *before = ledger;
    pthread_mutex_init(&lock, NULL);
    ledger = make_ledger();
    memcpy(ledger, before, sizeof *ledger);
    munmap(before, sizeof *before);
}

void reports_count(uint32_t context) {
    __atomic_add_fetch(&ledger->counts[context], 1, __ATOMIC_RELAXED);
}

static bool wait_for(const void *place, size_t size) {
    for (unsigned i = 0; i < WAIT_STEPS; i++) {
        uint32_t value = 0;
        memcpy(&value, place, size);
        if (value)
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
    return false;
}

// ---- messages ----------------------------------------------------------------------------------

struct message {
    struct wire_finding head;
    const char *names[2];
    uint32_t stacks[FINDING_STACKS];
    char names_room[2][256];
    _Alignas(8) char rest[FINDING_STACKS * 512 * 8 + 2 * 4096];
};

static size_t pack(struct message *m) {
    enum { PCS_MOST = 500, NAME_MOST = 4095 };
    size_t used = 0;
    for (unsigned i = 0; i < FINDING_STACKS; i++) {
        const uint64_t *pcs;
        size_t count = m->stacks[i] ? stack_pcs(m->stacks[i], &pcs) : 0;
        count = count < callers ? count : callers;
        count = count < PCS_MOST ? count : PCS_MOST;
        if (count)
            memcpy(m->rest + used, pcs, count * sizeof *pcs);
        m->head.pc_counts[i] = (uint32_t)count;
        used += count * sizeof *pcs;
    }
    for (unsigned i = 0; i < 2; i++) {
        const char *name = m->names[i] ? m->names[i] : "";
        size_t size = strnlen(name, NAME_MOST);
        memcpy(m->rest + used, name, size);
        m->rest[used + size] = 0;
        used += size + 1;
    }
    return used;
}

static void describe_place(struct message *m) {
    struct finding_facts *facts = &m->head.facts;
    struct races_block block;
    struct tool_frame frame;
    facts->place = PLACE_UNKNOWN;
    if (races_block_find(facts->address, &block)) {
        facts->place = PLACE_BLOCK;
        facts->start = block.start;
        facts->end = block.start + block.size;
        facts->place_thread = (int32_t)block.thread;
        m->stacks[STACK_OF_MAKING] = block.stack;
    } else if (tool_frame_of(facts->address, &frame)) {
        facts->place = PLACE_STACK;
        facts->place_thread = frame.thread;
        facts->frame = frame.frame;
        facts->frame_pc = frame.pc;
        facts->end = frame.end;
        facts->below = frame.below;
    }
}

static uint32_t new_context(void) {
    pthread_mutex_lock(&lock);
    uint32_t context = ledger->contexts < RACES_CONTEXTS - 1 ? ledger->contexts++ : UINT32_MAX;
    pthread_mutex_unlock(&lock);
    return context;
}

// The supervisor's answer.
static enum races_answer ask(struct message *m) {
    m->head.facts.thread = (int32_t)races_thread()->number;
    tool_send(WIRE_FINDING, &m->head, sizeof m->head, m->rest, pack(m));
    if (!wait_for(&ledger->answers[m->head.context], 1))
        return ANSWER_ATOMIC;
    enum races_answer answer = ledger->answers[m->head.context];
    if (answer == ANSWER_STOP) {
        syscall(SYS_exit_group, error_status);
        __builtin_unreachable();
    }
    if (answer == ANSWER_SHOWN)
        tool_error_shown(ledger->shown);
    return answer;
}

// The names are the locks that each side held.
static void list_locks(struct message *m) {
    const struct races_thread *thread = races_thread();
    char *at = m->names_room[0];
    size_t room = sizeof m->names_room[0];
    *at = 0;
    for (uint32_t i = 0; i < thread->lock_count && room > 20; i++) {
        static const char digits[] = "0123456789abcdef";
        uint64_t address = thread->locks[i].address;
        *at++ = ' ';
        *at++ = '0';
        *at++ = 'x';
        int shift = 60;
        while (shift && !(address >> shift))
            shift -= 4;
        for (; shift >= 0; shift -= 4)
            *at++ = digits[address >> shift & 15];
        *at = 0;
        room = sizeof m->names_room[0] - (size_t)(at - m->names_room[0]);
    }
    m->names[0] = m->names_room[0];
}

enum { CHANGES = ACCESS_READ | ACCESS_WRITE };

static uint8_t fault_of(const struct conflict *conflict) {
    return (conflict->kind & ACCESS_WRITE ? RACE_WRITES : 0) |
           (event_kind(&conflict->other) & ACCESS_WRITE ? RACE_WROTE : 0) |
           (conflict->kind == CHANGES ? RACE_CHANGES : 0) |
           (event_kind(&conflict->other) == CHANGES ? RACE_CHANGED : 0);
}

void reports_judge(void *argument) {
    struct conflict *conflict = argument;
    struct message *m = calloc(1, sizeof *m);
    conflict->verdict = VERDICT_ATOMIC;
    conflict->context = new_context();
    if (!m || conflict->context == UINT32_MAX) {
        free(m);
        return;
    }
    m->head.context = conflict->context;
    m->head.facts = (struct finding_facts){.kind = FINDING_RACE,
                                           .fault = fault_of(conflict),
                                           .address = conflict->address,
                                           .size = conflict->size,
                                           .value = conflict->other_thread,
                                           .reserved = event_size(&conflict->other)};
    describe_place(m);
    list_locks(m);
    m->stacks[STACK_OF_FINDING] = conflict->stack;
    m->stacks[STACK_OF_ORIGIN] = event_stack(&conflict->other);
    conflict->verdict = ask(m) == ANSWER_ATOMIC ? VERDICT_ATOMIC : VERDICT_RACE;
    free(m);
}

void reports_thread(uint32_t number, uint32_t stack) {
    struct message *m = calloc(1, sizeof *m);
    if (!m)
        return;
    m->head.context = RACES_CONTEXTS - 1;
    m->head.facts.kind = FINDING_THREAD;
    m->head.facts.thread = (int32_t)races_thread()->number;
    m->head.facts.value = number;
    m->stacks[STACK_OF_FINDING] = stack;
    tool_send(WIRE_FINDING, &m->head, sizeof m->head, m->rest, pack(m));
    free(m);
}

// ---- misuse ------------------------------------------------------------------------------------

enum { MISUSES = 4096 };

void reports_misuse(unsigned kind, const char *text, uint64_t object) {
    static struct {
        uint64_t key;
        uint32_t context;
    } known[MISUSES];
    static uint32_t count;
    uint32_t stack = stack_here();
    uint64_t key = hash_text(hash_add(HASH_TEXT_START, stack), text);
    uint32_t context = UINT32_MAX;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count; i++)
        if (known[i].key == key)
            context = known[i].context;
    bool is_new = context == UINT32_MAX && count < MISUSES && ledger->contexts < RACES_CONTEXTS - 1;
    if (is_new) {
        context = ledger->contexts++;
        known[count].key = key;
        known[count++].context = context;
    }
    pthread_mutex_unlock(&lock);
    if (context == UINT32_MAX)
        return;
    reports_count(context);
    struct message *m = is_new ? calloc(1, sizeof *m) : NULL;
    if (!m)
        return;
    m->head.context = context;
    m->head.facts = (struct finding_facts){.kind = (uint8_t)kind, .address = object};
    m->names[0] = text;
    m->stacks[STACK_OF_FINDING] = stack;
    if (kind != FINDING_PTHREAD && object) {
        struct sync *sync = sync_find(object, SYNC_OBJECT, false);
        m->stacks[STACK_OF_ORIGIN] = sync ? sync->made : 0;
    }
    ask(m);
    free(m);
}

// The four stacks are those of the message, in their order.
void reports_order(const struct lock_order *order) {
    uint32_t context = new_context();
    struct message *m = context == UINT32_MAX ? NULL : calloc(1, sizeof *m);
    if (!m)
        return;
    reports_count(context);
    m->head.context = context;
    m->head.facts = (struct finding_facts){
        .kind = FINDING_LOCK_ORDER, .address = order->held, .value = (int64_t)order->taken};
    m->names[0] = order->text;
    m->stacks[STACK_OF_FINDING] = order->observed[0];
    m->stacks[STACK_OF_MAKING] = order->observed[1];
    m->stacks[STACK_OF_FREEING] = order->required[0];
    m->stacks[STACK_OF_ORIGIN] = order->required[1];
    ask(m);
    free(m);
}

// ---- the end -----------------------------------------------------------------------------------

void reports_end(void) {
    struct wire_findings_end end = {0};
    tool_send(WIRE_FINDINGS_END, &end, sizeof end, NULL, 0);
}

int reports_exit_status(int status) {
    if (!error_status || !wait_for(&ledger->end, sizeof ledger->end))
        return status;
    return ledger->end == 2 ? error_status : status;
}
