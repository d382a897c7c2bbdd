#include "engine/translate/watch.h"

#include <string.h>

#include "engine/memory/target.h"
#include "engine/task.h"
#include "engine/tool.h"
#include "engine/translate/builder.h"

enum { WATCHES = 64, WATCH_BYTES = 512 };

unsigned watch_count;
static struct watch watches[WATCHES];
static uint8_t values[WATCHES][WATCH_BYTES]; // when they were last looked at

static unsigned place_of(const struct watch *watch) {
    unsigned i = 0;
    while (i < watch_count && (watches[i].start != watch->start || watches[i].size != watch->size ||
                               watches[i].kind != watch->kind))
        i++;
    return i;
}

bool watch_add(const struct watch *watch) {
    if (place_of(watch) < watch_count)
        return true;
    if (watch_count == WATCHES || watch->size > WATCH_BYTES || !watch->size)
        return false;
    watches[watch_count++] = *watch;
    watch_renew();
    return true;
}

bool watch_remove(const struct watch *watch) {
    unsigned i = place_of(watch);
    if (i == watch_count)
        return false;
    watches[i] = watches[--watch_count];
    watch_renew();
    return true;
}

void watch_remove_all(void) {
    watch_count = 0;
}

void watch_renew(void) {
    for (unsigned i = 0; i < watch_count; i++)
        if (target_read(values[i], watches[i].start, watches[i].size))
            memset(values[i], 0, watches[i].size);
}

// ---- while the target runs ---------------------------------------------------------------------

// The instruction is finished first.
static void note(unsigned index) {
    self->debug.watch = index + 1;
    __atomic_or_fetch(&self->pending, PENDING_DEBUG, __ATOMIC_SEQ_CST);
}

const struct watch *watch_take_hit(void) {
    unsigned number = self->debug.watch;
    self->debug.watch = 0;
    return number && number <= watch_count ? &watches[number - 1] : NULL;
}

static bool is_wanted(enum watch_kind kind, const struct tool_access *access) {
    return (kind != WATCH_READS && access->writes) || (kind != WATCH_WRITES && access->reads);
}

static void compare_values(void *unused) {
    uint8_t now[WATCH_BYTES];
    for (unsigned i = 0; i < watch_count; i++)
        if (watches[i].kind != WATCH_READS &&
            !target_read(now, watches[i].start, watches[i].size) &&
            memcmp(now, values[i], watches[i].size) != 0) {
            memcpy(values[i], now, watches[i].size);
            note(i);
        }
}

// The accesses of one instruction, as long as its block lasts.
struct looked_at {
    unsigned count;
    bool repeats;
    struct tool_access accesses[TOOL_ACCESSES];
};

static void look_at_access(const struct tool_access *access, bool repeats) {
    uint64_t start = tool_access_address(access);
    uint64_t size = access->size;
    if (repeats) {
        size *= self->gpr[RCX];
        if (tool_direction() < 0)
            start -= size - access->size;
    }
    for (unsigned i = 0; i < watch_count; i++)
        if (is_wanted(watches[i].kind, access) && start < watches[i].start + watches[i].size &&
            watches[i].start < start + size)
            note(i);
}

static void look_at_accesses(void *argument) {
    const struct looked_at *looked_at = argument;
    for (unsigned i = 0; i < looked_at->count; i++)
        look_at_access(&looked_at->accesses[i], looked_at->repeats);
}

void watch_insert(struct builder *b, const struct tool_insn *insn, bool is_first) {
    if (is_first)
        builder_call(b, compare_values, NULL);
    if (!insn->access_count)
        return;
    struct looked_at *looked_at = block_memory(sizeof *looked_at);
    looked_at->count = insn->access_count;
    looked_at->repeats = insn->repeats;
    memcpy(looked_at->accesses, insn->accesses, sizeof insn->accesses);
    builder_call(b, look_at_accesses, looked_at);
}
