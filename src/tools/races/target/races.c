// The tool: its hooks.
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/races/target/cells.h"
#include "tools/races/target/graph.h"
#include "tools/races/target/order.h"
#include "tools/races/target/reports.h"
#include "tools/shared/stacks.h"
#include "tools/tools.h"

bool races_has_threads;

// ---- threads -----------------------------------------------------------------------------------

enum { NO_CELL = 1 }; // no segment has the number 0

#define TWICE(cell) ((uint64_t)(cell) << 32 | (cell))

__attribute__((target("general-regs-only"))) void races_set_patterns(struct races_thread *thread) {
    uint32_t cell = thread->segment << CELL_SEGMENT;
    for (unsigned i = 0; i < RACES_HITS; i++)
        thread->hits[i] = NO_CELL;
    if (!races_has_threads) { // memory without cells is as if it had been accessed
        thread->read_pattern = thread->write_pattern = thread->read_mask = 0;
        thread->byte_pattern = CELL_BITS;
        return;
    }
    thread->read_mask = TWICE(~0xf0u);
    thread->read_pattern = TWICE(cell | 0xfu);
    thread->write_pattern = TWICE(cell | 0xffu);
    thread->byte_pattern = cell;
}

void races_begin_threads(void) {
    if (races_has_threads)
        return;
    races_has_threads = true;
    races_set_patterns(races_thread());
}

// Threads that have a slot one after the other use the same.
static struct races_memo *memos_of(uint32_t slot) {
    static struct races_memo *memos[CLOCK_SLOTS];
    if (!memos[slot])
        memos[slot] = races_memory(RACES_MEMOS * sizeof **memos);
    return memos[slot];
}

// The stack, and what the C library keeps above it: thread-local variables, and its own record of
// the thread. All of it may have been another thread's before.
static void clear_own_memory(void) {
    enum { RECORD = 4096, LOCAL_MOST = 64 << 20 };
    uint64_t start, end, pointer = tool_thread_pointer();
    if (!tool_own_stack(&start, &end))
        return;
    if (pointer >= end && pointer - end < LOCAL_MOST)
        end = pointer + RECORD;
    if (tool_has_shadow(start, end - start))
        tool_shadow_clear(start, end);
}

static void thread_started(void) {
    struct races_thread *thread = races_thread();
    static uint32_t last_number;
    thread->number = __atomic_add_fetch(&last_number, 1, __ATOMIC_RELAXED);
    thread->slot = slot_take(&thread->clock);
    history_thread(thread);
    thread->memos = memos_of(thread->slot);
    races_set_patterns(thread);
    if (!races_has_threads)
        return;
    clear_own_memory();
    struct sync *birth = sync_find(tool_thread_pointer(), SYNC_BIRTH, false);
    if (!birth)
        return;
    sync_acquire(thread, birth);
    reports_thread(thread->number, birth->made);
}

static void thread_ended(void) {
    struct races_thread *thread = races_thread();
    order_thread_ended();
    if (races_has_threads) {
        struct sync *sync = sync_find(tool_thread_pointer(), SYNC_EXIT, true);
        races_take_pending(thread);
        sync_lock(sync);
        clock_clear(&sync->all); // of a thread before
        clock_join(&sync->all, &thread->clock);
        sync_unlock(sync);
        races_released(thread);
    }
    slot_give(thread->slot);
}

// What the parent knows, for the thread that will have this thread pointer.
static void give_birth(uint64_t flags, uint64_t pointer) {
    if (!(flags & CLONE_THREAD))
        return;
    races_begin_threads();
    struct sync *birth = sync_find(pointer, SYNC_BIRTH, true);
    sync_lock(birth);
    clock_clear(&birth->all);
    birth->made = races_thread()->creating ? races_thread()->creating : stack_here();
    sync_unlock(birth);
    sync_release(races_thread(), birth);
}

// ---- system calls ------------------------------------------------------------------------------

// Pipes, sockets and their kind hand over what their writer knew.
static struct sync *channel_of(uint64_t fd) {
    struct stat status;
    if (!races_has_threads || fstat((int)fd, &status))
        return NULL;
    if (S_ISSOCK(status.st_mode)) // which two belong together is not known
        return sync_find(1, SYNC_CHANNEL, true);
    if (S_ISFIFO(status.st_mode))
        return sync_find(status.st_ino << 8 | 2, SYNC_CHANNEL, true);
    if ((status.st_mode & S_IFMT) == 0) // eventfd and so on: they share one inode
        return sync_find((fd & 0xffff) << 8 | 3, SYNC_CHANNEL, true);
    return NULL;
}

static bool sends(long number) {
    return number == SYS_write || number == SYS_writev || number == SYS_sendto ||
           number == SYS_sendmsg || number == SYS_sendmmsg || number == SYS_splice ||
           number == SYS_close || number == SYS_shutdown;
}

static bool receives(long number) {
    return number == SYS_read || number == SYS_readv || number == SYS_recvfrom ||
           number == SYS_recvmsg || number == SYS_recvmmsg || number == SYS_splice;
}

static void before_clone(long number, const uint64_t arguments[6]) {
    if (number == SYS_clone) {
        give_birth(arguments[0], arguments[4]);
    } else if (number == SYS_clone3) {
        struct clone_args given = {0};
        size_t size = arguments[1] < sizeof given ? arguments[1] : sizeof given;
        if (tool_read(&given, arguments[0], size) == 0)
            give_birth(given.flags, given.tls);
    }
}

// Calls of the program's own: those of the C library's locks are known by their functions.
static struct sync *futex_of(const uint64_t arguments[6], bool wakes) {
    enum { WAKE = 1, REQUEUE = 3, CMP_REQUEUE = 4, WAKE_OP = 5, WAKE_BITSET = 10, COMMAND = 127 };
    uint64_t operation = arguments[1] & COMMAND;
    bool is_wake = operation == WAKE || operation == REQUEUE || operation == CMP_REQUEUE ||
                   operation == WAKE_OP || operation == WAKE_BITSET;
    if (is_wake != wakes || races_is_libc(tool_pc()))
        return NULL;
    return sync_find(arguments[0], SYNC_FUTEX, true);
}

static void before_system_call(long number, const uint64_t arguments[6]) {
    struct sync *sync = NULL;
    if (number == SYS_clone || number == SYS_clone3)
        before_clone(number, arguments);
    else if (!races_has_threads)
        return;
    else if (sends(number))
        sync = channel_of(arguments[number == SYS_splice ? 2 : 0]);
    else if (number == SYS_futex)
        sync = futex_of(arguments, true);
    else if (number == SYS_tgkill || number == SYS_tkill || number == SYS_rt_tgsigqueueinfo ||
             number == SYS_rt_sigqueueinfo || number == SYS_kill)
        sync = sync_find(0, SYNC_SIGNAL, true);
    if (sync)
        sync_release(races_thread(), sync);
}

static void after_system_call(long number, const uint64_t arguments[6], long result) {
    struct sync *sync = NULL;
    if (!races_has_threads)
        return;
    if (result >= 0 && receives(number))
        sync = channel_of(arguments[0]);
    else if (number == SYS_futex)
        sync = futex_of(arguments, false);
    if (sync)
        sync_acquire(races_thread(), sync);
}

static void signal_delivered(int number, uint64_t frame, uint64_t frame_end,
                             uint64_t alternate_stack) {
    struct races_thread *thread = races_thread();
    struct sync *sync = sync_find(0, SYNC_SIGNAL, false);
    thread->handlers++;
    if (sync)
        sync_acquire(thread, sync);
}

static void signal_returned(uint64_t frame) {
    struct races_thread *thread = races_thread();
    if (thread->handlers)
        thread->handlers--;
}

// ---- memory, processes -------------------------------------------------------------------------

static void module(uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    races_insert_module(start, end, path);
}

static void unmapped(uint64_t start, uint64_t end) {
    races_insert_unmapped(start, end);
}

// The child has one thread, which knows all.
static void forked(void) {
    struct races_thread *thread = races_thread();
    races_block_forked();
    reports_forked();
    graph_forked();
    for (uint32_t slot = 0; slot < slot_count(); slot++)
        if (slot != thread->slot)
            clock_set(&thread->clock, slot, UINT64_MAX / 2);
}

static void start(void) {
    stacks_start();
    history_start();
    order_start();
    reports_start();
    conflicts_start();
}

static void end(void) {
    reports_end();
}

const struct tool tool_helgrind = {
    .name = "helgrind",
    .thread_size = sizeof(struct races_thread),
    .shadow_distance = RACES_SHADOW,
    .plain_hooks = true,
    .symbols = races_symbols,
    .start = start,
    .end = end,
    .exit_status = reports_exit_status,
    .instruction = races_instruction,
    .block_end = races_block_end,
    .replaced = races_replaced,
    .thread_started = thread_started,
    .thread_ended = thread_ended,
    .forked = forked,
    .unmapped = unmapped,
    .module = module,
    .before_system_call = before_system_call,
    .after_system_call = after_system_call,
    .signal_delivered = signal_delivered,
    .signal_returned = signal_returned,
};
