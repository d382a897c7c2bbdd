#include "recorder/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire_heap_ring.h"

// Attempts at the shared ring's lock: half a second or so.
#define LOCK_ATTEMPTS 20000

// What `self` holds instead of a thread.
#define NONE         NULL
#define STARTING     ((struct recorder_thread *)1)
#define ENDED        ((struct recorder_thread *)2)
#define IS_THREAD(t) ((uintptr_t)(t) > 2)

PER_THREAD struct recorder_thread *self;
PER_THREAD uint64_t latest; // inverted: or a search for leaks would find it here
PER_THREAD const void *deleting;

// By ring; never unmapped.
static struct recorder_thread *_Atomic threads[WIRE_HEAP_RINGS];
static atomic_flag shared_lock = ATOMIC_FLAG_INIT;

uint64_t *record_latest(void) {
    return &latest;
}

static void count_missed(void) {
    atomic_fetch_add_explicit(&recorder_area->missed, 1, memory_order_relaxed);
}

// ---- writing ----

// Writes a record of up to three words after the first, then `more_count` further ones.
static inline void write_record(struct recorder_thread *thread, enum wire_heap_kind kind,
                                unsigned count, uint64_t a, uint64_t b, uint64_t c,
                                const uint64_t *more, size_t more_count) {
    wire_heap_write(recorder_area, thread->ring, &thread->limit, kind, count, a, b, c, more,
                    more_count, recorder_is_heard);
}

void record_stack(struct recorder_thread *thread, uint32_t id, const uint64_t *words, size_t count,
                  bool truncated, size_t frames) {
    uint64_t word = id | (uint64_t)count << 32 | (uint64_t)truncated << 48 | (uint64_t)frames << 49;
    write_record(thread, WIRE_HEAP_STACK, 1, word, 0, 0, words,
                 count + frames * sizeof(struct python_frame) / sizeof *words);
}

void record_code(struct recorder_thread *thread, const void *code, size_t size) {
    write_record(thread, WIRE_HEAP_CODE, 1, size, 0, 0, code,
                 (size + sizeof(uint64_t) - 1) / sizeof(uint64_t));
}

// ---- threads ----

static uint32_t claim_ring(void) {
    for (uint32_t i = 1; i < WIRE_HEAP_RINGS; i++) {
        uint32_t count = atomic_load(&recorder_area->ring_count);
        if (i >= count) {
            // A fresh one; the supervisor looks at it once the count includes it.
            if (atomic_compare_exchange_strong(&recorder_area->ring_count, &count, i + 1))
                return i;
            i--;
            continue;
        }
        struct recorder_thread *old = atomic_load(&threads[i]);
        uint32_t state = WIRE_HEAP_FREE;
        if (old && atomic_compare_exchange_strong(&old->ring->state, &state, WIRE_HEAP_USED))
            return i;
    }
    return 0;
}

// The structure of a ring, made when it is first used.
static struct recorder_thread *thread_of(uint32_t index) {
    struct recorder_thread *thread = atomic_load(&threads[index]);
    if (thread)
        return thread;
    thread = recorder_map_private(sizeof *thread);
    struct wire_heap_ring *ring = thread ? recorder_map_ring(index) : NULL;
    if (!ring)
        return NULL;
    thread->ring = ring;
    thread->index = index;
    ring->own = (uint64_t)thread;
    atomic_store(&ring->state, WIRE_HEAP_USED);
    atomic_store(&threads[index], thread);
    return thread;
}

// Names are compared by the supervisor, which may hear the same one again.
static void write_name(struct recorder_thread *thread, uint32_t index, const char *name) {
    uint64_t words[2] = {0};
    strncpy((char *)words, name, sizeof words - 1);
    write_record(thread, WIRE_HEAP_NAME, 3, index, words[0], words[1], NULL, 0);
}

static void write_own_name(struct recorder_thread *thread) {
    char name[16] = "";
    syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
    write_name(thread, thread->index, name);
}

static __attribute__((noinline)) struct recorder_thread *start_thread(void) {
    int saved = errno;
    self = STARTING;
    uint32_t index = claim_ring();
    struct recorder_thread *thread = index ? thread_of(index) : NULL;
    if (thread) {
        thread->stack_low = thread->stack_high = 0;
        thread->busy = 0;
        thread->is_over = false;
        thread->rounds = 0;
        thread->resizing = false;
        thread->handle = pthread_self();
        thread->tid = (int)syscall(SYS_gettid);
        write_record(thread, WIRE_HEAP_THREAD, 1, (uint64_t)thread->tid, 0, 0, NULL, 0);
        write_own_name(thread);
        recorder_watch_end(thread);
    }
    self = thread ? thread : ENDED;
    errno = saved;
    return thread;
}

void record_thread_ended(struct recorder_thread *thread) {
    write_own_name(thread);
    self = ENDED;
    thread->is_over = true;
    atomic_store(&thread->ring->state, WIRE_HEAP_ENDED);
}

static void say_thread_again(struct recorder_thread *thread) {
    char path[64] = "/proc/self/task/", digits[16], name[16] = "";
    size_t size = strlen(path), count = 0;
    for (int rest = thread->tid; rest > 0; rest /= 10)
        digits[count++] = (char)('0' + rest % 10);
    while (count)
        path[size++] = digits[--count];
    strcpy(path + size, "/comm");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, name, sizeof name - 1) : 0;
    if (fd >= 0)
        close(fd);
    name[got > 0 ? got - 1 : 0] = 0; // without the line feed
    write_record(thread, WIRE_HEAP_THREAD, 1, (uint64_t)thread->tid, 0, 0, NULL, 0);
    write_name(thread, thread->index, name);
}

void record_again(void) {
    uint32_t count = 1;
    for (uint32_t i = 0; i < WIRE_HEAP_RINGS; i++)
        count = atomic_load(&threads[i]) && i >= count ? i + 1 : count;
    for (uint32_t i = 0; i < count; i++) {
        struct recorder_thread *thread = atomic_load(&threads[i]);
        if (!thread)
            continue;
        thread->limit = 0;
        thread->busy = 0;
        thread->resizing = false;
        thread->last_stack = 0;
        thread->unknown = 0;
        thread->ring->own = (uint64_t)thread;
        atomic_store(&thread->ring->state, thread->is_over ? WIRE_HEAP_FREE : WIRE_HEAP_USED);
        if (i && !thread->is_over)
            say_thread_again(thread);
    }
    atomic_store(&recorder_area->ring_count, count);
}

void record_after_fork(void) {
    for (uint32_t i = 0; i < WIRE_HEAP_RINGS; i++) {
        struct recorder_thread *thread = atomic_exchange(&threads[i], NULL);
        if (thread)
            recorder_unmap_private(thread, sizeof *thread);
    }
    atomic_flag_clear(&shared_lock);
    self = NONE;
}

// The shared ring, locked; NULL: not to be had now.
static __attribute__((noinline)) struct recorder_thread *enter_shared(void) {
    for (int attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
        if (!atomic_flag_test_and_set_explicit(&shared_lock, memory_order_acquire)) {
            struct recorder_thread *thread = thread_of(0);
            if (thread) {
                thread->stack_low = thread->stack_high = 0;
                return thread;
            }
            atomic_flag_clear(&shared_lock);
            break;
        }
        if (attempt > 100)
            sched_yield();
    }
    count_missed();
    return NULL;
}

// Begins an event: the calling thread's structure, or the shared one. NULL: cannot be recorded.
static inline struct recorder_thread *enter(void) {
    struct recorder_thread *thread = self;
    if (UNLIKELY(!IS_THREAD(thread))) {
        if (thread == STARTING)
            return NULL;
        thread = thread == NONE ? start_thread() : NULL;
        if (!thread)
            return enter_shared();
    }
    uint64_t here = (uint64_t)__builtin_frame_address(0);
    // An interrupted event lies further up the same stack, unless a handler left it by longjmp.
    if (UNLIKELY(thread->busy) && !(here > thread->busy && here < thread->stack_high))
        return enter_shared();
    thread->busy = here;
    atomic_signal_fence(memory_order_seq_cst);
    return thread;
}

static inline void leave(struct recorder_thread *thread) {
    atomic_signal_fence(memory_order_seq_cst);
    if (UNLIKELY(thread->index == 0))
        atomic_flag_clear_explicit(&shared_lock, memory_order_release);
    else
        thread->busy = 0;
}

// ---- events ----

void record_allocated(const void *block, size_t size, const uint64_t *frame) {
    struct recorder_thread *thread = enter();
    if (!thread)
        return;
    uint32_t stack = stacks_here(thread, frame);
    write_record(thread, WIRE_HEAP_ALLOCATED, 3, (uint64_t)block, size, stack, NULL, 0);
    latest = ~(uint64_t)block;
    leave(thread);
}

void record_freed(const void *block) {
    struct recorder_thread *thread = enter();
    if (!thread)
        return;
    write_record(thread, WIRE_HEAP_FREED, 1, (uint64_t)block, 0, 0, NULL, 0);
    leave(thread);
}

// A resize that another one of the same thread has interrupted, or that goes through the shared
// ring, is told as a release and an allocation: the pair must not be torn apart in a ring.
bool record_resize_began(const void *block) {
    struct recorder_thread *thread = enter();
    if (!thread)
        return false;
    bool whole = thread->index != 0 && !thread->resizing;
    thread->resizing = whole || thread->resizing;
    write_record(thread, whole ? WIRE_HEAP_RESIZE_BEGAN : WIRE_HEAP_FREED, 1, (uint64_t)block, 0, 0,
                 NULL, 0);
    leave(thread);
    return whole;
}

void record_resize_ended(bool began, const void *old, size_t old_usable, const void *block,
                         size_t size, const uint64_t *frame) {
    if (!began) {
        record_allocated(block ? block : old, block ? size : old_usable, frame);
        return;
    }
    struct recorder_thread *thread = self;
    uint64_t interrupted = thread->busy;
    thread->busy = (uint64_t)__builtin_frame_address(0);
    uint32_t stack = block ? stacks_here(thread, frame) : 0;
    write_record(thread, WIRE_HEAP_RESIZE_ENDED, 3, (uint64_t)block, size, stack, NULL, 0);
    latest = ~(uint64_t)block;
    thread->resizing = false;
    thread->busy = interrupted;
}

void record_resize_released(bool began) {
    if (!began)
        return;
    struct recorder_thread *thread = self;
    uint64_t interrupted = thread->busy;
    thread->busy = (uint64_t)__builtin_frame_address(0);
    write_record(thread, WIRE_HEAP_RESIZE_ENDED, 3, WIRE_HEAP_RELEASED, 0, 0, NULL, 0);
    thread->resizing = false;
    thread->busy = interrupted;
}

// ---- what is not about blocks ----

void record_mapped(const void *address, size_t size, unsigned kind) {
    struct recorder_thread *thread = enter();
    if (!thread)
        return;
    uint64_t stack = stacks_here(thread, NULL);
    write_record(thread, WIRE_HEAP_MAPPED, 3, (uint64_t)address, size, stack | (uint64_t)kind << 32,
                 NULL, 0);
    leave(thread);
}

void record_unmapped(const void *address, size_t size) {
    struct recorder_thread *thread = enter();
    if (!thread)
        return;
    write_record(thread, WIRE_HEAP_UNMAPPED, 2, (uint64_t)address, size, 0, NULL, 0);
    leave(thread);
}

// A thread that has no ring yet tells its name when it gets one.
void record_name(pthread_t handle, const char *name) {
    struct recorder_thread *thread = enter();
    if (!thread)
        return;
    uint32_t count = atomic_load(&recorder_area->ring_count);
    for (uint32_t i = 1; i < count && i < WIRE_HEAP_RINGS; i++) {
        const struct recorder_thread *other = atomic_load(&threads[i]);
        if (other && pthread_equal(other->handle, handle) &&
            atomic_load(&other->ring->state) == WIRE_HEAP_USED)
            write_name(thread, i, name);
    }
    leave(thread);
}

void record_sample(void) {
    struct recorder_thread *thread = enter();
    if (!thread)
        return;
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t size = read(fd, text, sizeof text - 1);
        text[size > 0 ? size : 0] = 0;
        close(fd);
    }
    // The first three numbers: pages mapped, in memory, and of files or shared among those.
    uint64_t pages[3] = {0};
    const char *at = text;
    for (int i = 0; i < 3; i++) {
        for (; *at >= '0' && *at <= '9'; at++)
            pages[i] = pages[i] * 10 + (uint64_t)(*at - '0');
        at += *at == ' ';
    }
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t anonymous = pages[1] > pages[2] ? (pages[1] - pages[2]) * page : 0;
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);
    write_record(thread, WIRE_HEAP_SAMPLE, 3, pages[1] * page, (uint64_t)usage.ru_minflt,
                 (uint64_t)usage.ru_majflt, &anonymous, 1);
    leave(thread);
}

// ---- what the program says ----

void record_mark(unsigned kind, const char *name) {
    struct recorder_thread *thread = enter();
    uint64_t words[WIRE_HEAP_NAME_MAX / sizeof(uint64_t)] = {0};
    if (!thread)
        return;
    size_t size = strnlen(name, WIRE_HEAP_NAME_MAX);
    memcpy(words, name, size);
    write_record(thread, WIRE_HEAP_MARK, 1, kind | (uint64_t)size << 32, 0, 0, words,
                 (size + sizeof *words - 1) / sizeof *words);
    leave(thread);
}

void record_chunk(const void *block, size_t size) {
    struct recorder_thread *thread = enter();
    if (!thread)
        return;
    write_record(thread, WIRE_HEAP_CHUNK, 2, (uint64_t)block, size, 0, NULL, 0);
    leave(thread);
}

// The supervisor answers when it comes to the record.
static bool wait_for_answer(struct wire_heap_ring *ring, uint32_t number) {
    for (unsigned waits = 1;; waits++) {
        uint32_t answered = atomic_load_explicit(&ring->answered, memory_order_acquire);
        if (answered == number)
            return true;
        if (atomic_load_explicit(&recorder_area->abandoned, memory_order_relaxed) ||
            (waits % WIRE_HEAP_WAITS_PER_CHECK == 0 && !recorder_is_heard()))
            return false;
        struct timespec time = {.tv_nsec = WIRE_HEAP_WAIT_NANOSECONDS};
        syscall(SYS_futex, &ring->answered, FUTEX_WAIT, answered, &time, NULL, 0);
    }
}

bool record_ask(uint64_t *answers) {
    struct recorder_thread *thread = enter();
    int saved = errno;
    if (!thread)
        return false;
    struct wire_heap_ring *ring = thread->ring;
    bool is_own = thread->index != 0;
    uint32_t number = atomic_load(&ring->answered) + 1;
    if (is_own)
        write_record(thread, WIRE_HEAP_ASKED, 1, number, 0, 0, NULL, 0);
    leave(thread);
    is_own = is_own && wait_for_answer(ring, number);
    for (unsigned i = 0; is_own && i < WIRE_HEAP_ANSWERS; i++)
        answers[i] = atomic_load_explicit(&ring->answers[i], memory_order_relaxed);
    errno = saved;
    return is_own;
}

// ---- operator delete ----

const void *record_delete_began(const void *block) {
    const void *outer = deleting;
    if (recorder_preloaded_on() && outer != block)
        record_freed(block);
    deleting = block;
    return outer;
}

void record_delete_ended(const void *outer) {
    deleting = outer;
}

bool record_is_deleting(const void *block) {
    return block == deleting;
}
