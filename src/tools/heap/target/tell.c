// Writing into the rings of wire_heap.h.
#include "tools/heap/target/heap.h"

#include <cpuid.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "base/fd.h"
#include "wire/wire.h"
#include "wire/wire_heap_table.h"

#define WAIT_NANOSECONDS 20000000

static struct wire_heap_header *area;                    // NULL: nothing is recorded
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // guards the choice of rings

static struct wire_heap_ring *ring_at(uint32_t index) {
    return (struct wire_heap_ring *)((char *)area + WIRE_HEAP_RING_AT(index));
}

// ---- the area ----

static uint64_t monotonic(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t clock_now(void) {
    if (area->clock != WIRE_HEAP_CLOCK_TSC)
        return monotonic();
    _mm_lfence();
    return __rdtsc();
}

static uint32_t choose_clock(void) {
    unsigned eax, ebx, ecx, edx;
    bool even = __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) && (edx & 1u << 8);
    return even ? WIRE_HEAP_CLOCK_TSC : WIRE_HEAP_CLOCK_MONOTONIC;
}

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
        area->clock = choose_clock();
        area->clock_start = clock_now();
        atomic_store(&area->ring_count, 1);
        tool_give_heap(fd, WIRE_HEAP_SIZE);
    }
    if (fd >= 0)
        close(fd);
}

// ---- writing ----

// Waits until the supervisor has made room. False: it will not.
static bool wait_for_room(struct heap_thread *thread, uint64_t needed) {
    struct wire_heap_ring *ring = thread->ring;
    for (;;) {
        uint32_t taken = atomic_load(&ring->taken);
        thread->limit = atomic_load(&ring->head) + WIRE_HEAP_RING_WORDS;
        if (needed <= thread->limit)
            return true;
        if (atomic_load(&area->abandoned))
            return false;
        struct timespec time = {.tv_nsec = WAIT_NANOSECONDS};
        atomic_store(&ring->waiting, 1);
        syscall(SYS_futex, &ring->taken, FUTEX_WAIT, taken, &time, NULL, 0);
        atomic_store(&ring->waiting, 0);
    }
}

static void put(const struct heap_thread *thread, uint64_t at, uint64_t word) {
    thread->ring->words[at % WIRE_HEAP_RING_WORDS] = word;
}

static void write_record(struct heap_thread *thread, enum wire_heap_kind kind,
                         const uint64_t *words, size_t count, const uint64_t *more,
                         size_t more_count) {
    uint64_t tail = atomic_load_explicit(&thread->ring->tail, memory_order_relaxed);
    uint64_t end = tail + 1 + count + more_count;
    if (end > thread->limit && !wait_for_room(thread, end)) {
        atomic_fetch_add(&area->missed, 1);
        return;
    }
    put(thread, tail, clock_now() << WIRE_HEAP_KIND_BITS | kind);
    for (size_t i = 0; i < count; i++)
        put(thread, tail + 1 + i, words[i]);
    for (size_t i = 0; i < more_count; i++)
        put(thread, tail + 1 + count + i, more[i]);
    atomic_store_explicit(&thread->ring->tail, end, memory_order_release);
}

#define WRITE(thread, kind, ...)                                                                   \
    write_record(thread, kind, (const uint64_t[]){__VA_ARGS__},                                    \
                 sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), NULL, 0)

// What time it is, for who wants to know.
static void write_moment(struct heap_thread *thread) {
    if (heap_choices.instructions || heap_choices.stacks)
        WRITE(thread, WIRE_HEAP_MOMENT, ticks_instructions(), ticks_stacks());
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
    WRITE(thread, WIRE_HEAP_NAME, thread->index, name[0], name[1]);
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
    WRITE(thread, WIRE_HEAP_THREAD, (uint64_t)syscall(SYS_gettid));
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
        write_record(thread, WIRE_HEAP_STACK, &word, 1, pcs + first, count - first);
    return id;
}

void tell_allocated(uint64_t address, uint64_t size, uint32_t stack) {
    struct heap_thread *thread = heap_thread();
    if (!thread->ring)
        return;
    write_moment(thread);
    WRITE(thread, WIRE_HEAP_ALLOCATED, address, size, stack);
}

void tell_freed(uint64_t address) {
    struct heap_thread *thread = heap_thread();
    if (!thread->ring)
        return;
    write_moment(thread);
    WRITE(thread, WIRE_HEAP_FREED, address);
}

void tell_resize_began(uint64_t from) {
    struct heap_thread *thread = heap_thread();
    if (!thread->ring)
        return;
    write_moment(thread);
    WRITE(thread, WIRE_HEAP_RESIZE_BEGAN, from);
}

void tell_resize_ended(uint64_t to, uint64_t size, uint32_t stack) {
    struct heap_thread *thread = heap_thread();
    if (thread->ring)
        WRITE(thread, WIRE_HEAP_RESIZE_ENDED, to, size, stack);
}

void tell_mapped(uint64_t start, uint64_t size, enum wire_heap_region kind, uint32_t stack) {
    struct heap_thread *thread = heap_thread();
    if (!thread->ring)
        return;
    write_moment(thread);
    WRITE(thread, WIRE_HEAP_MAPPED, start, size, stack | (uint64_t)kind << 32);
}

void tell_unmapped(uint64_t start, uint64_t size) {
    struct heap_thread *thread = heap_thread();
    if (!thread->ring)
        return;
    write_moment(thread);
    WRITE(thread, WIRE_HEAP_UNMAPPED, start, size);
}

void tell_mark(unsigned kind, const char *name, size_t size) {
    struct heap_thread *thread = heap_thread();
    uint64_t words[WIRE_HEAP_NAME_MAX / sizeof(uint64_t)] = {0};
    uint64_t word = kind | (uint64_t)size << 32;
    if (!thread->ring || size > sizeof words)
        return;
    memcpy(words, name, size);
    write_moment(thread);
    write_record(thread, WIRE_HEAP_MARK, &word, 1, words,
                 (size + sizeof *words - 1) / sizeof *words);
}

void tell_chunk(uint64_t start, uint64_t size) {
    struct heap_thread *thread = heap_thread();
    if (!thread->ring)
        return;
    write_moment(thread);
    WRITE(thread, WIRE_HEAP_CHUNK, start, size);
}

bool tell_ask(uint64_t *answers) {
    struct heap_thread *thread = heap_thread();
    if (!thread->ring)
        return false;
    struct wire_heap_ring *ring = thread->ring;
    uint32_t answered, number = atomic_load(&ring->answered) + 1;
    WRITE(thread, WIRE_HEAP_ASKED, number);
    while ((answered = atomic_load(&ring->answered)) != number) {
        struct timespec time = {.tv_nsec = WAIT_NANOSECONDS};
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
        WRITE(thread, WIRE_HEAP_DEPTH, instructions, stacks);
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
