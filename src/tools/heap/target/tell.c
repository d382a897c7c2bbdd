// Writing into the rings of wire_heap.h.
#include "tools/heap/target/heap.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "wire/wire.h"
#include "wire/wire_heap_ring.h"
#include "wire/wire_heap_table.h"

static struct wire_heap_header *area;                    // NULL: nothing is recorded
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards the choice of rings

static struct wire_heap_ring *ring_at(uint32_t index) {
    return (struct wire_heap_ring *)((char *)area + WIRE_HEAP_RING_AT(index));
}

// ---- the area ----

void tell_open(void) {
    int fd = memfd_create("quern-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *memory = MAP_FAILED;
    if (fd >= 0 && fd_set_size(fd, WIRE_HEAP_SIZE) &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
        memory =
            mmap(NULL, WIRE_HEAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (memory == MAP_FAILED) {
        tool_say("The heap is not recorded: there is no memory to share with the supervisor");
    } else {
        madvise(memory, WIRE_HEAP_SIZE, MADV_DONTFORK);
        area = memory;
        area->version = WIRE_VERSION;
        wire_heap_start_clock(area);
        atomic_store(&area->ring_count, 1);
        tool_give_heap(fd, WIRE_HEAP_SIZE);
    }
    if (fd >= 0)
        close(fd);
}

void tell_provisional(void) {
    if (area)
        area->is_provisional = 1;
}

void tell_ended(void) {
    if (area)
        atomic_store(&area->ended_at, wire_heap_now(area));
}

// ---- writing ----

static void write_record(struct heap_thread *thread, enum wire_heap_kind kind, unsigned count,
                         uint64_t a, uint64_t b, uint64_t c, const uint64_t *more,
                         size_t more_count) {
    wire_heap_write(area, thread->ring, &thread->limit, kind, count, a, b, c, more, more_count,
                    NULL);
}

// The moment of the next event, if the options ask for moments.
static void write_moment(struct heap_thread *thread) {
    if (heap_choices.instructions || heap_choices.stacks)
        write_record(thread, WIRE_HEAP_MOMENT, 2, ticks_instructions(), ticks_stacks(), 0, NULL, 0);
}

// An event of the calling thread, if it is recorded, with the moment before it.
static void write_event(enum wire_heap_kind kind, unsigned count, uint64_t a, uint64_t b,
                        uint64_t c) {
    struct heap_thread *thread = heap_thread();
    if (!thread->ring)
        return;
    write_moment(thread);
    write_record(thread, kind, count, a, b, c, NULL, 0);
}

// ---- threads ----

static uint32_t claim_ring(void) {
    uint32_t count = atomic_load(&area->ring_count);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t state = WIRE_HEAP_FREE;
        if (atomic_compare_exchange_strong(&ring_at(i)->state, &state, WIRE_HEAP_USED))
            return i;
    }
    if (count == WIRE_HEAP_RINGS)
        return 0;
    atomic_store(&ring_at(count)->state, WIRE_HEAP_USED);
    atomic_store(&area->ring_count, count + 1);
    return count;
}

static void write_name(struct heap_thread *thread) {
    uint64_t name[2] = {0};
    prctl(PR_GET_NAME, name, 0, 0, 0);
    write_record(thread, WIRE_HEAP_NAME, 3, thread->index, name[0], name[1], NULL, 0);
}

void tell_thread_started(void) {
    struct heap_thread *thread = heap_thread();
    if (!area)
        return;
    pthread_mutex_lock(&lock);
    thread->index = claim_ring();
    pthread_mutex_unlock(&lock);
    if (!thread->index) {
        atomic_fetch_add(&area->missed, 1);
        return;
    }
    thread->ring = ring_at(thread->index);
    thread->limit = 0;
    write_record(thread, WIRE_HEAP_THREAD, 1, (uint64_t)syscall(SYS_gettid), 0, 0, NULL, 0);
    write_name(thread);
}

void tell_thread_ended(void) {
    struct heap_thread *thread = heap_thread();
    if (!thread->ring)
        return;
    write_name(thread);
    write_moment(thread);
    atomic_store(&thread->ring->state, WIRE_HEAP_ENDED);
    thread->ring = NULL;
}

void tell_forking(void) {
    pthread_mutex_lock(&lock);
}

void tell_fork_made(void) {
    pthread_mutex_unlock(&lock);
}

void tell_forked(void) {
    pthread_mutex_unlock(&lock);
    area = NULL;
    heap_thread()->ring = NULL;
}

// ---- events ----

uint32_t tell_stack(unsigned skipped) {
    struct heap_thread *thread = heap_thread();
    uint64_t pcs[WIRE_HEAP_FRAMES + 8];
    if (!thread->ring)
        return 0;
    size_t count = tool_stack(pcs, heap_choices.depth + skipped);
    bool truncated = count == heap_choices.depth + skipped;
    size_t first = skipped < count ? skipped : count;
    uint64_t hash = wire_heap_hash(pcs + first, count - first, truncated);
    bool is_new;
    uint32_t id = wire_heap_intern(area, hash, &is_new);
    uint64_t word = id | (uint64_t)(count - first) << 32 | (uint64_t)truncated << 48;
    if (is_new)
        write_record(thread, WIRE_HEAP_STACK, 1, word, 0, 0, pcs + first, count - first);
    return id;
}

void tell_allocated(uint64_t address, uint64_t size, uint32_t stack) {
    write_event(WIRE_HEAP_ALLOCATED, 3, address, size, stack);
}

void tell_freed(uint64_t address) {
    write_event(WIRE_HEAP_FREED, 1, address, 0, 0);
}

void tell_resize_began(uint64_t from) {
    write_event(WIRE_HEAP_RESIZE_BEGAN, 1, from, 0, 0);
}

void tell_resize_ended(uint64_t to, uint64_t size, uint32_t stack) {
    struct heap_thread *thread = heap_thread();
    if (thread->ring)
        write_record(thread, WIRE_HEAP_RESIZE_ENDED, 3, to, size, stack, NULL, 0);
}

void tell_mapped(uint64_t start, uint64_t size, enum wire_heap_region kind, uint32_t stack) {
    write_event(WIRE_HEAP_MAPPED, 3, start, size, stack | (uint64_t)kind << 32);
}

void tell_unmapped(uint64_t start, uint64_t size) {
    write_event(WIRE_HEAP_UNMAPPED, 2, start, size, 0);
}

void tell_mark(unsigned kind, const char *name, size_t size) {
    struct heap_thread *thread = heap_thread();
    uint64_t words[WIRE_HEAP_NAME_MAX / sizeof(uint64_t)] = {0};
    uint64_t word = kind | (uint64_t)size << 32;
    if (!thread->ring || size > sizeof words)
        return;
    memcpy(words, name, size);
    write_moment(thread);
    write_record(thread, WIRE_HEAP_MARK, 1, word, 0, 0, words,
                 (size + sizeof *words - 1) / sizeof *words);
}

void tell_chunk(uint64_t start, uint64_t size) {
    write_event(WIRE_HEAP_CHUNK, 2, start, size, 0);
}

bool tell_ask(uint64_t *answers) {
    struct heap_thread *thread = heap_thread();
    if (!thread->ring)
        return false;
    struct wire_heap_ring *ring = thread->ring;
    uint32_t answered, number = atomic_load(&ring->answered) + 1;
    write_record(thread, WIRE_HEAP_ASKED, 1, number, 0, 0, NULL, 0);
    while ((answered = atomic_load(&ring->answered)) != number) {
        struct timespec time = {.tv_nsec = WIRE_HEAP_WAIT_NANOSECONDS};
        if (atomic_load(&area->abandoned))
            return false;
        syscall(SYS_futex, &ring->answered, FUTEX_WAIT, answered, &time, NULL, 0);
    }
    for (unsigned i = 0; i < WIRE_HEAP_ANSWERS; i++)
        answers[i] = atomic_load(&ring->answers[i]);
    return true;
}

void tell_depth(uint64_t instructions, uint64_t stacks) {
    struct heap_thread *thread = heap_thread();
    if (thread->ring)
        write_record(thread, WIRE_HEAP_DEPTH, 2, instructions, stacks, 0, NULL, 0);
}

__attribute__((target("general-regs-only"))) struct tell_wishes tell_wishes(void) {
    if (!area)
        return (struct tell_wishes){UINT64_MAX, UINT64_MAX, UINT64_MAX};
    return (struct tell_wishes){
        .peak = atomic_load_explicit(&area->peak, memory_order_relaxed),
        .next_instructions = atomic_load_explicit(&area->next_instructions, memory_order_relaxed),
        .next_clock = atomic_load_explicit(&area->next_clock, memory_order_relaxed),
    };
}
