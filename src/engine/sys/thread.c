// Threads and processes.
//
// A target thread is a host thread made with pthread_create, so that engine code has a C library
// around it. What the kernel would do for a thread made with clone (tid addresses, robust futexes)
// is done here, in the kernel's order. A vfork child, which shares memory with its suspended
// parent, borrows the parent's task and runs on an engine stack of its own. A process that shares
// memory with a parent that goes on is the vfork child of a host thread made for this alone.
#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/cache/block.h"
#include "engine/debug/debug.h"
#include "engine/hooks/hooks.h"
#include "engine/memory/memory.h"
#include "engine/memory/target.h"
#include "engine/enter.h"
#include "engine/rlimits.h"
#include "engine/process.h"
#include "engine/report/ending.h"
#include "engine/stack/stack.h"
#include "engine/signal/signal.h"
#include "engine/sys/sys.h"
#include "engine/task.h"
#include "wire/wire_target.h"

enum { ENGINE_STACK = 256 * 1024, ROBUST_LIMIT = 2048 };

// What clone and clone3 have in common.
struct clone_request {
    uint64_t flags; // without the exit signal
    uint64_t exit_signal, parent_tid, child_tid, tls, pidfd;
    uint64_t stack, stack_size; // where it ends; its size, 0: not said
};

// The registers of a child are the parent's but for these.
static void adjust_child(struct task *child, const struct clone_request *request) {
    child->gpr[RAX] = 0;
    child->gpr[RCX] = child->pc; // as the syscall instruction leaves them
    child->gpr[R11] = child->flags;
    if (request->stack)
        child->gpr[RSP] = request->stack;
    if (request->flags & CLONE_SETTLS)
        child->fs_base = request->tls;
}

static void store_tid(uint64_t address, int tid) {
    if (address)
        target_write(address, &tid, sizeof tid);
}

// ---- threads -----------------------------------------------------------------------------------

struct thread_start {
    const struct clone_request *request;
    const struct task *parent;
    sem_t ready;
    int tid;
};

static void copy_registers(struct task *to, const struct task *from) {
    memcpy(to->gpr, from->gpr, sizeof to->gpr);
    to->pc = from->pc;
    to->flags = from->flags;
    to->fs_base = from->fs_base;
    to->gs_base = from->gs_base;
    memcpy(to->xstate, from->xstate, xstate_size);
}

// ---- the stack of a new thread -----------------------------------------------------------------
//
// clone says where a stack ends, but not where it begins, and what lies below may be anything: Go
// takes stacks for its threads from its heap. The mapping counts as the stack only where that is
// certain enough; a stack that is not known costs some reports, a wrong one makes false reports.

// Where there is a thread control block as C libraries lay it out, behind the stack in its mapping:
// it begins with its own address.
static bool has_control_block(const struct clone_request *request, uint64_t end) {
    enum { MOST = 16384 };
    uint64_t first;
    return request->flags & CLONE_SETTLS && request->tls >= request->stack && request->tls < end &&
           end - request->tls <= MOST && target_read(&first, request->tls, sizeof first) == 0 &&
           first == request->tls;
}

// Nothing in the mapping has been touched but what the parent has put at the end.
static bool is_unused(uint64_t start, uint64_t end) {
    enum { AT_ONCE = 4096, PUT = 2 * SPACE_PAGE };
    static const uint64_t most = 1ul << 30;
    unsigned char resident[AT_ONCE];
    if (end - start > most)
        return false;
    for (uint64_t at = start; at + PUT < end;) {
        uint64_t size = end - PUT - at, room = AT_ONCE * SPACE_PAGE;
        size = (size < room ? size : room) & -(uint64_t)SPACE_PAGE;
        if (size == 0)
            break;
        if (mincore((void *)at, size, resident) != 0)
            return false;
        for (uint64_t i = 0; i < size / SPACE_PAGE; i++)
            if (resident[i] & 1)
                return false;
        at += size;
    }
    return true;
}

static void find_stack(const struct clone_request *request) {
    struct space_range range;
    uint64_t end = request->stack;
    memory_read_lock();
    bool found = end && space_find(&target_space, end - 1, &range) && range.start < end;
    memory_unlock();
    if (!found)
        return;
    if (request->stack_size && request->stack_size < end - range.start)
        range.start = end - request->stack_size;
    else if (!request->stack_size && !has_control_block(request, range.end) &&
             (range.end - end > SPACE_PAGE || !is_unused(range.start, end)))
        return;
    self->stack_start = range.start;
    self->stack_end = end;
}

// ---- the thread itself -------------------------------------------------------------------------

static void set_up_thread(const struct task *parent) {
    signal_block_all(); // the C library leaves its own signals open, which are the target's too
    task_init_thread();
    signal_init_thread();
    copy_registers(self, parent);
    self->sighand = parent->sighand;
    self->limits = parent->limits;
    self->sigmask = parent->sigmask;
    altstack_reset();
}

static void take_down_thread(void) {
    task_unregister(self);
    stack_thread_end();
    task_free_thread();
}

static void *thread_main(void *argument) {
    struct thread_start *start = argument;
    const struct clone_request *request = start->request;
    set_up_thread(start->parent);
    adjust_child(self, request);
    if (request->flags & CLONE_CHILD_CLEARTID)
        self->clear_child_tid = request->child_tid;
    if (request->flags & CLONE_PARENT_SETTID)
        store_tid(request->parent_tid, self->tid);
    if (request->flags & CLONE_CHILD_SETTID)
        store_tid(request->child_tid, self->tid);
    find_stack(request);
    task_register(self);
    start->tid = self->tid;
    sem_post(&start->ready); // start is gone after this
    if (sigsetjmp(self->thread_end, 0) == 0) {
        hooks_thread_start();
        signal_set_mask(self->sigmask);
        sys_run();
    }
    take_down_thread();
    return NULL;
}

// Makes a host thread and waits until it is ready. Its tid or a negative error number.
static long start_host_thread(const struct clone_request *request, void *(*function)(void *)) {
    struct thread_start start = {.request = request, .parent = self};
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, ENGINE_STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sem_init(&start.ready, 0, 0);
    signal_block_all();
    int error = pthread_create(&thread, &attributes, function, &start);
    if (!error)
        while (sem_wait(&start.ready) != 0)
            continue;
    signal_restore_mask();
    pthread_attr_destroy(&attributes);
    sem_destroy(&start.ready);
    return error ? -error : start.tid;
}

// ---- the end of a thread -----------------------------------------------------------------------

static void wake(uint64_t address) {
    syscall(SYS_futex, address, FUTEX_WAKE, 1, NULL, NULL, 0);
}

// As the kernel does for a futex whose owner dies.
static void owner_died(uint64_t address) {
    uint32_t *word = (uint32_t *)address, value;
    while (target_read(&value, address, 4) == 0 &&
           (value & FUTEX_TID_MASK) == (uint32_t)self->tid) {
        uint32_t dead = (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
        if (__atomic_compare_exchange_n(word, &value, dead, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
            if (value & FUTEX_WAITERS)
                wake(address);
            return;
        }
    }
}

static void release_robust_futexes(void) {
    struct {
        uint64_t next;
        int64_t offset;
        uint64_t pending;
    } head;
    if (!self->robust_list || target_read(&head, self->robust_list, sizeof head))
        return;
    uint64_t entry = head.next, next;
    for (unsigned i = 0; i < ROBUST_LIMIT && entry != self->robust_list; i++) {
        if (target_read(&next, entry & ~1ul, sizeof next))
            break;
        if (entry != head.pending)
            owner_died((entry & ~1ul) + head.offset);
        entry = next;
    }
    if (head.pending)
        owner_died((head.pending & ~1ul) + head.offset);
    self->robust_list = 0;
    // The kernel would go through the list once more when the host thread ends, long after the
    // target may have reused its memory.
    static struct robust_list_head none = {.list = {&none.list}};
    syscall(SYS_set_robust_list, &none, sizeof none);
}

static void clear_tid(void) {
    if (!self->clear_child_tid)
        return;
    store_tid(self->clear_child_tid, 0);
    wake(self->clear_child_tid);
}

// Ends the process as exit_group does.
__attribute__((noreturn)) static void exit_process(int status) {
    status = ending_by_exit(status);
    if (self->is_borrowed)
        clear_tid(); // others share the memory
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}

// Ends the thread as exit does.
__attribute__((noreturn)) static void exit_thread(int status) {
    signal_block_all();
    task_become_idle();
    if (self->is_borrowed || task_is_last()) {
        debug_ending(status != 0);
        status = ending_by_exit(status);
    }
    if (!self->is_borrowed)
        hooks_thread_end();
    debug_thread_ends();
    release_robust_futexes();
    clear_tid();
    if (!self->is_leader)
        siglongjmp(self->thread_end, 1);
    if (!self->is_borrowed)
        task_unregister(self);
    syscall(SYS_exit, status);
    __builtin_unreachable();
}

// ---- processes ---------------------------------------------------------------------------------

// What is pending for the parent is not for its child.
static void forget_pending_signals(void) {
    self->queued.number = 0;
    self->held_back = 0;
    __atomic_and_fetch(&self->pending, ~PENDING_SIGNAL, __ATOMIC_SEQ_CST);
}

static void after_fork(const struct clone_request *request, int parent) {
    cache_forked();
    memory_forked();
    stack_forked();
    task_forked();
    debug_forked();
    forget_pending_signals();
    self->is_leader = true;
    self->is_borrowed = false;
    self->clear_child_tid = 0;
    self->robust_list = 0;
    self->dispatch.is_on = false;
    rlimits_forked();
    wire_send_forked(parent, getpid());
    rlimits_lift();
    TOOL_HOOK(forked);
    rlimits_restore();
    if (request->flags & CLONE_CHILD_CLEARTID)
        self->clear_child_tid = request->child_tid;
    if (request->flags & CLONE_CHILD_SETTID)
        store_tid(request->child_tid, self->tid);
    adjust_child(self, request);
}

static long fork_process(const struct clone_request *request) {
    const uint64_t ours = CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | CLONE_PARENT_SETTID |
                          CLONE_SETTLS | CLONE_SYSVSEM;
    int parent = getpid();
    signal_block_all();
    memory_write_lock();
    cache_lock();
    task_lock_list();
    rlimits_lift();
    TOOL_HOOK(forking);
    long child;
    if ((request->flags & ~ours) == 0 && request->exit_signal == SIGCHLD)
        child = fork(); // leaves the C library's locks in order
    else
        child = syscall(SYS_clone, (request->flags & ~ours) | request->exit_signal, NULL,
                        request->pidfd, NULL, 0);
    if (child < 0)
        child = -errno;
    if (child == 0) {
        after_fork(request, parent);
        signal_restore_mask();
        return 0;
    }
    TOOL_HOOK(fork_made);
    rlimits_restore();
    task_unlock_list();
    cache_unlock();
    memory_unlock();
    if (child > 0 && request->flags & CLONE_PARENT_SETTID)
        store_tid(request->parent_tid, child);
    signal_restore_mask();
    return child;
}

struct vfork_start {
    const struct clone_request *request;
    struct thread_start *waiting; // a parent that goes on; NULL: it is suspended
};

static void vfork_main(void *argument) {
    const struct vfork_start *start = argument;
    const struct clone_request *request = start->request;
    self->pid = getpid();
    self->tid = syscall(SYS_gettid);
    forget_pending_signals();
    self->is_leader = self->is_borrowed = true;
    self->clear_child_tid = request->flags & CLONE_CHILD_CLEARTID ? request->child_tid : 0;
    self->dispatch.is_on = false;
    if (!(request->flags & CLONE_SIGHAND))
        self->sighand = sighand_copy(self->sighand);
    self->limits = rlimits_copy(self->limits);
    wire_send_forked(getppid(), getpid());
    TOOL_HOOK(vforked);
    adjust_child(self, request);
    if (request->flags & CLONE_CHILD_SETTID)
        store_tid(request->child_tid, self->tid);
    if (start->waiting) {
        start->waiting->tid = self->tid;
        sem_post(&start->waiting->ready);
    }
    signal_set_mask(self->sigmask);
    sys_run();
}

// Waits until the kernel has cleared the word. The child uses this thread's task and errno.
static void wait_until_cleared(uint32_t *word) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE)) {
        register uint64_t no_timeout __asm__("r10") = 0;
        long result;
        __asm__ volatile("syscall"
                         : "=a"(result)
                         : "0"(SYS_futex), "D"(word), "S"(FUTEX_WAIT), "d"(1), "r"(no_timeout)
                         : "rcx", "r11", "memory");
    }
}

static long vfork_process(const struct clone_request *request, struct thread_start *waiting) {
    static const uint64_t ours =
        CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | CLONE_PARENT_SETTID | CLONE_SETTLS;
    struct vfork_start start = {.request = request, .waiting = waiting};
    uint8_t *stack =
        mmap(NULL, ENGINE_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *xstate = malloc(xstate_size);
    if (stack == MAP_FAILED || !xstate)
        return -ENOMEM;
    signal_block_all();
    TOOL_HOOK(vforking);
    struct task saved = *self;
    memcpy(xstate, self->xstate, xstate_size);
    // Whoever traces the process can stop a thread that waits for a futex, but not one in the
    // kernel's vfork. The child may be the tracer (LeakSanitizer's is).
    uint32_t is_running = 1;
    uint64_t how = waiting ? CLONE_CHILD_CLEARTID : CLONE_VFORK;
    long child = clone_vm((request->flags & ~(ours | CLONE_VFORK)) | how | request->exit_signal,
                          stack + ENGINE_STACK - 16, vfork_main, &start, (void *)request->pidfd,
                          &is_running);
    if (child > 0 && waiting)
        wait_until_cleared(&is_running);
    if (self->sighand != saved.sighand)
        free(self->sighand);
    if (self->limits != saved.limits)
        free(self->limits);
    // Links in the list of tasks and stop requests are not the child's.
    saved.next = self->next;
    saved.pending = (saved.pending & PENDING_SIGNAL) | (self->pending & PENDING_STOP);
    saved.busy = 0;
    *self = saved;
    TOOL_HOOK(vfork_made);
    memcpy(self->xstate, xstate, xstate_size);
    free(xstate);
    munmap(stack, ENGINE_STACK);
    return child;
}

// A host thread that waits for a process which shares its memory, in place of the parent.
static void *waiting_main(void *argument) {
    struct thread_start *start = argument;
    struct clone_request request = *start->request;
    set_up_thread(start->parent);
    task_register(self);
    hooks_thread_start();
    long child = vfork_process(&request, start);
    if (child < 0) {
        start->tid = (int)child;
        sem_post(&start->ready);
    }
    hooks_thread_end();
    take_down_thread();
    return NULL;
}

static long start_sharing_process(const struct clone_request *request) {
    long child = request->flags & CLONE_VFORK ? vfork_process(request, NULL)
                                              : start_host_thread(request, waiting_main);
    if (child > 0 && request->flags & CLONE_PARENT_SETTID)
        store_tid(request->parent_tid, child);
    if (request->flags & CLONE_VFORK)
        signal_restore_mask();
    return child;
}

static long do_clone(const struct clone_request *request) {
    if (request->flags & CLONE_THREAD)
        return request->flags & CLONE_VM ? start_host_thread(request, thread_main) : -EINVAL;
    if (!(request->flags & CLONE_VM))
        return fork_process(request);
    return start_sharing_process(request);
}

long sys_clone(long number, struct sys_arguments *args) {
    struct clone_request request = {.flags = args->a[0] & ~(uint64_t)CSIGNAL,
                                    .exit_signal = args->a[0] & CSIGNAL,
                                    .stack = args->a[1],
                                    .parent_tid = args->a[2],
                                    .child_tid = args->a[3],
                                    .tls = args->a[4],
                                    .pidfd = args->a[2]};
    return do_clone(&request);
}

long sys_clone3(long number, struct sys_arguments *args) {
    struct clone_args native = {0};
    uint64_t size = args->a[1];
    if (size < CLONE_ARGS_SIZE_VER0)
        return -EINVAL;
    if (target_read(&native, args->a[0], size < sizeof native ? size : sizeof native))
        return -EFAULT;
    if (native.set_tid_size || native.flags & CLONE_INTO_CGROUP || native.flags & CSIGNAL)
        return -EINVAL;
    struct clone_request request = {.flags = native.flags,
                                    .exit_signal = native.exit_signal,
                                    .stack = native.stack ? native.stack + native.stack_size : 0,
                                    .stack_size = native.stack ? native.stack_size : 0,
                                    .parent_tid = native.parent_tid,
                                    .child_tid = native.child_tid,
                                    .tls = native.tls,
                                    .pidfd = native.pidfd};
    return do_clone(&request);
}

long sys_fork(long number, struct sys_arguments *args) {
    return do_clone(&(struct clone_request){.exit_signal = SIGCHLD});
}

long sys_vfork(long number, struct sys_arguments *args) {
    return do_clone(
        &(struct clone_request){.flags = CLONE_VM | CLONE_VFORK, .exit_signal = SIGCHLD});
}

long sys_exit(long number, struct sys_arguments *args) {
    exit_thread(args->a[0]);
}

static void exit_now(void *status) {
    exit_process((long)status);
}

// Libraries may have something to free first, also of other threads, which run no more then. When
// the loader itself ends the process, they are not ready for anything. Another process that shares
// the memory still needs what they would free.
static bool call_exit_functions(int status) {
    static bool called;
    uint64_t returns[RETURNS_AT_EXIT];
    bool by_loader = self->pc >= process.loader_start && self->pc < process.loader_end;
    if (self->is_borrowed || by_loader || task_shares_memory() ||
        __atomic_exchange_n(&called, true, __ATOMIC_SEQ_CST))
        return false;
    unsigned count = functions_at_exit(returns, exit_now, (void *)(long)status);
    uint64_t sp = ((self->gpr[RSP] - RED_ZONE) & ~15ul) - count * sizeof *returns;
    if (!count || target_write(sp, returns, count * sizeof *returns))
        return false;
    TOOL_HOOK(stored, sp, count * sizeof *returns);
    task_end_others();
    self->pc = returns[0];
    self->gpr[RSP] = sp + sizeof *returns;
    return true;
}

long sys_exit_group(long number, struct sys_arguments *args) {
    debug_ending(args->a[0] != 0);
    if (call_exit_functions(args->a[0]))
        return SYS_DONE;
    exit_process(args->a[0]);
}

long sys_set_tid_address(long number, struct sys_arguments *args) {
    self->clear_child_tid = args->a[0];
    return self->tid;
}

long sys_set_robust_list(long number, struct sys_arguments *args) {
    if (args->a[1] != 24)
        return -EINVAL;
    self->robust_list = args->a[0];
    return sys_pass(number, args);
}
