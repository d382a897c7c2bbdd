// The list of modules exists twice. A writer changes the copy that is not current and then makes it
// current by raising the sequence number, whose lowest bit says which one that is. A reader notes
// the number, reads the current copy, and starts again if the number has changed meanwhile. So
// readers never wait: one that interrupts a writer still finds the other copy whole.
//
// Module slots and tables are never given back while the space is open, because a reader may hold
// them. Programs that load and unload for ever stay bounded all the same: a slot is used again for
// a module with the same description, and a table is kept once for all modules that compile to the
// same bytes.

#include "unwind/space.h"

#include "unwind/pages.h"

#define LIVE_MAX  16384u
#define SLOT_MAX  65536u
#define TABLE_MAX 65536u

struct range {
    atomic_ulong start, end;
    _Atomic(struct module *) module;
};

// Invariant: sorted by start, no two overlap.
struct range_list {
    atomic_size_t count;
    struct range ranges[LIVE_MAX];
};

struct unwind_space_state {
    struct unwind_space_head head; // first
    atomic_bool locked;
    atomic_ulong sequence;
    size_t slot_count; // under the lock
    atomic_size_t table_count;
    _Atomic(struct unwind_table *) tables[TABLE_MAX];
    struct range_list lists[2];
    struct module slots[SLOT_MAX];
};

static void lock(struct unwind_space_state *state) {
    while (atomic_exchange_explicit(&state->locked, true, memory_order_acquire))
        pages_yield();
}

static void unlock(struct unwind_space_state *state) {
    atomic_store_explicit(&state->locked, false, memory_order_release);
}

enum unwind_status unwind_space_open(struct unwind_space *space) {
    space->state = pages_map(sizeof *space->state);
    return space->state ? UNWIND_OK : UNWIND_NO_MEMORY;
}

void unwind_space_close(struct unwind_space *space) {
    struct unwind_space_state *state = space->state;
    size_t count = atomic_load(&state->table_count);
    for (size_t i = 0; i < count && i < TABLE_MAX; i++)
        unwind_table_free(atomic_load(&state->tables[i]));
    pages_unmap(state, sizeof *state);
    space->state = NULL;
}

void unwind_space_after_fork(struct unwind_space *space) {
    unlock(space->state);
}

// ---- readers ----

static struct module *search(struct range_list *list, uint64_t address) {
    size_t low = 0, high = atomic_load_explicit(&list->count, memory_order_relaxed);
    while (low < high) {
        size_t middle = (low + high) / 2;
        struct range *range = &list->ranges[middle];
        if (address < atomic_load_explicit(&range->start, memory_order_relaxed))
            high = middle;
        else if (address >= atomic_load_explicit(&range->end, memory_order_relaxed))
            low = middle + 1;
        else
            return atomic_load_explicit(&range->module, memory_order_relaxed);
    }
    return NULL;
}

struct module *unwind_space_find(struct unwind_space *space, uint64_t address) {
    struct unwind_space_state *state = space->state;
    for (;;) {
        uint64_t sequence = atomic_load_explicit(&state->sequence, memory_order_acquire);
        struct module *module = search(&state->lists[sequence & 1], address);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&state->sequence, memory_order_relaxed) == sequence)
            return module;
    }
}

// Puts a new table on record, or finds that there is one like it already and drops the new one.
static struct unwind_table *keep_table(struct unwind_space_state *state,
                                       struct unwind_table *table) {
    size_t count = atomic_load_explicit(&state->table_count, memory_order_acquire);
    for (size_t i = 0; i < count && i < TABLE_MAX; i++) {
        struct unwind_table *other = atomic_load_explicit(&state->tables[i], memory_order_acquire);
        if (other && other->bytes == table->bytes && memcmp(other, table, table->bytes) == 0) {
            unwind_table_free(table);
            return other;
        }
    }
    size_t place = atomic_fetch_add(&state->table_count, 1);
    if (place < TABLE_MAX)
        atomic_store_explicit(&state->tables[place], table, memory_order_release);
    return table;
}

// Two threads may compile the same table at once, and the second result is dropped. Making one of
// them wait for the other would hang a signal handler that interrupted the compilation.
const struct unwind_table *unwind_space_table(struct unwind_space *space, struct module *module) {
    struct unwind_table *table = atomic_load_explicit(&module->table, memory_order_acquire);
    if (table)
        return table;
    table = unwind_table_compile(&module->image);
    if (!table)
        return NULL;
    table = keep_table(space->state, table);
    struct unwind_table *before = NULL;
    if (!atomic_compare_exchange_strong(&module->table, &before, table))
        return before;
    return table;
}

bool unwind_space_prepare(struct unwind_space *space, uint64_t address) {
    struct module *module = unwind_space_find(space, address);
    const struct unwind_table *table = module ? unwind_space_table(space, module) : NULL;
    return table && table->functions > 0;
}

bool unwind_space_sizes(struct unwind_space *space, uint64_t address, struct unwind_sizes *sizes) {
    struct module *module = unwind_space_find(space, address);
    const struct unwind_table *table = module ? unwind_space_table(space, module) : NULL;
    if (!table)
        return false;
    *sizes = (struct unwind_sizes){.bytes = table->bytes,
                                   .rows = table->row_count,
                                   .rules = table->rule_count,
                                   .wide_rules = table->wide_count,
                                   .functions = table->functions,
                                   .bad = table->bad};
    return true;
}

// ---- writers ----

// The copy that may be changed, made equal to the current one.
static struct range_list *begin_change(struct unwind_space_state *state) {
    uint64_t sequence = atomic_load_explicit(&state->sequence, memory_order_relaxed);
    struct range_list *from = &state->lists[sequence & 1];
    struct range_list *to = &state->lists[(sequence + 1) & 1];
    atomic_thread_fence(memory_order_seq_cst);
    size_t count = atomic_load_explicit(&from->count, memory_order_relaxed);
    for (size_t i = 0; i < count; i++) {
        to->ranges[i].start = from->ranges[i].start;
        to->ranges[i].end = from->ranges[i].end;
        to->ranges[i].module = from->ranges[i].module;
    }
    to->count = count;
    return to;
}

static void end_change(struct unwind_space_state *state) {
    atomic_fetch_add_explicit(&state->sequence, 1, memory_order_acq_rel);
}

static struct module *take_slot(struct unwind_space_state *state,
                                const struct unwind_image *image) {
    for (size_t i = 0; i < state->slot_count; i++) {
        struct module *slot = &state->slots[i];
        if (!slot->live && memcmp(&slot->image, image, sizeof *image) == 0)
            return slot;
    }
    if (state->slot_count == SLOT_MAX)
        return NULL;
    struct module *slot = &state->slots[state->slot_count++];
    memcpy(&slot->image, image, sizeof *image);
    return slot;
}

static enum unwind_status insert(struct unwind_space_state *state, const struct unwind_image *image,
                                 struct unwind_table *table) {
    struct range_list *list = begin_change(state);
    size_t count = list->count, at = 0;
    while (at < count && list->ranges[at].end <= image->start)
        at++;
    if (at < count && list->ranges[at].start < image->end)
        return UNWIND_OVERLAP;
    struct module *slot = count < LIVE_MAX ? take_slot(state, image) : NULL;
    if (!slot)
        return UNWIND_TOO_MANY;
    slot->live = true;
    atomic_store_explicit(&slot->table, table, memory_order_release);
    for (size_t i = count; i > at; i--) {
        list->ranges[i].start = list->ranges[i - 1].start;
        list->ranges[i].end = list->ranges[i - 1].end;
        list->ranges[i].module = list->ranges[i - 1].module;
    }
    list->ranges[at].start = image->start;
    list->ranges[at].end = image->end;
    list->ranges[at].module = slot;
    list->count = count + 1;
    end_change(state);
    return UNWIND_OK;
}

enum unwind_status unwind_space_add(struct unwind_space *space, const struct unwind_image *image) {
    lock(space->state);
    enum unwind_status status = insert(space->state, image, NULL);
    unlock(space->state);
    return status;
}

enum unwind_status unwind_space_add_file(struct unwind_space *space, const void *bytes, size_t size,
                                         uint64_t bias, bool mapped) {
    struct unwind_image image;
    if (!unwind_image_from_file(&image, bytes, size, bias))
        return UNWIND_NOT_ELF;
    struct unwind_table *table = unwind_table_compile(&image);
    if (!table)
        return UNWIND_NO_MEMORY;
    image.mapped = mapped;
    image.header = image.frames = (struct unwind_view){0};
    table = keep_table(space->state, table);
    lock(space->state);
    enum unwind_status status = insert(space->state, &image, table);
    unlock(space->state);
    return status;
}

size_t unwind_space_remove(struct unwind_space *space, uint64_t start, uint64_t end) {
    struct unwind_space_state *state = space->state;
    lock(state);
    struct range_list *list = begin_change(state);
    size_t count = list->count, kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct range *range = &list->ranges[i];
        if (range->start < end && start < range->end) {
            struct module *module = range->module;
            module->live = false;
            continue;
        }
        list->ranges[kept].start = range->start;
        list->ranges[kept].end = range->end;
        list->ranges[kept++].module = range->module;
    }
    list->count = kept;
    if (kept != count) {
        end_change(state);
        atomic_fetch_add_explicit(&state->head.generation, 1, memory_order_acq_rel);
    }
    unlock(state);
    return count - kept;
}
