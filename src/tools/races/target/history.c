// The latest accesses of each thread, with their stacks: who finds a conflict looks here for the
// other side. Plain. The owner writes, anybody reads; an event that is being overwritten is not
// the one that is looked for, which its segment tells.
#include "tools/races/target/races.h"
#include "tools/shared/stacks.h"

enum { EVENTS_LEAST = 1 << 10, EVENT_BYTES = sizeof(struct races_event) };

struct races_history {
    uint64_t next;
    struct races_event events[];
};

static uint64_t events_most = 1 << 18;
static struct races_history *histories[CLOCK_SLOTS]; // stay when a thread ends

void history_start(void) {
    const char *option = tool_option("conflict-cache-size");
    uint64_t wanted = 0;
    for (; option && *option >= '0' && *option <= '9' && wanted < 1ul << 30; option++)
        wanted = 10 * wanted + (uint64_t)(*option - '0');
    // The option is for all threads together; a few share the work as a rule.
    if (wanted)
        for (events_most = EVENTS_LEAST; events_most < wanted / 8; events_most *= 2)
            ;
}

void history_thread(struct races_thread *thread) {
    struct races_history **history = &histories[thread->slot];
    if (!*history)
        __atomic_store_n(history, races_memory(sizeof **history + events_most * EVENT_BYTES),
                         __ATOMIC_RELEASE);
    thread->history = *history;
}

void history_add(struct races_thread *thread, uint64_t address, unsigned size, unsigned kind) {
    struct races_history *history = thread->history;
    struct races_event *event = &history->events[history->next % events_most];
    __atomic_store_n(&event->segment, 0, __ATOMIC_RELAXED);
    event->place = address | (uint64_t)size << 56;
    event->stack = stack_here() | (kind & (ACCESS_READ | ACCESS_WRITE)) << 30;
    __atomic_store_n(&event->segment, thread->segment, __ATOMIC_RELEASE);
    __atomic_store_n(&history->next, history->next + 1, __ATOMIC_RELEASE);
}

static bool fits(const struct races_event *event, uint32_t segment, uint64_t address, unsigned size,
                 unsigned kinds) {
    return event->segment == segment && event_kind(event) & kinds &&
           event_address(event) < address + size &&
           address < event_address(event) + event_size(event);
}

bool history_find(uint32_t slot, uint32_t segment, uint64_t address, unsigned size, unsigned kinds,
                  struct races_event *found) {
    const struct races_history *history = __atomic_load_n(&histories[slot], __ATOMIC_ACQUIRE);
    if (!history)
        return false;
    uint64_t next = __atomic_load_n(&history->next, __ATOMIC_ACQUIRE);
    uint64_t least = next > events_most ? next - events_most : 0;
    while (next-- > least) {
        const struct races_event *event = &history->events[next % events_most];
        if (!fits(event, segment, address, size, kinds))
            continue;
        *found = *event;
        if (fits(found, segment, address, size, kinds))
            return true;
    }
    return false;
}
