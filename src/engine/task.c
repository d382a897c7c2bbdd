#include <cpuid.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/fatal.h"
#include "engine/task.h"

_Thread_local struct task current_task;
int32_t task_displacement;
uint64_t xstate_features;
uint32_t xstate_size;
bool xstate_has_xsaveopt;

#define OFFSET_IS(field, offset)                                                                   \
    _Static_assert(offsetof(struct task, field) == offset, "offset of " #field)
OFFSET_IS(gpr, TASK_GPR);
OFFSET_IS(pc, TASK_PC);
OFFSET_IS(flags, TASK_FLAGS);
OFFSET_IS(spill, TASK_SPILL);
OFFSET_IS(fs_base, TASK_FS_BASE);
OFFSET_IS(gs_base, TASK_GS_BASE);
OFFSET_IS(jump_target, TASK_JUMP_TARGET);
OFFSET_IS(host_rsp, TASK_HOST_RSP);
OFFSET_IS(entry, TASK_ENTRY);
OFFSET_IS(xstate, TASK_XSTATE);
OFFSET_IS(exit_link, TASK_EXIT_LINK);
OFFSET_IS(exit_reason, TASK_EXIT_REASON);
OFFSET_IS(pending, TASK_PENDING);
OFFSET_IS(tool, TASK_TOOL);
OFFSET_IS(syscall, TASK_SYSCALL);
OFFSET_IS(tool_words, TASK_TOOL_WORDS);
OFFSET_IS(stepping, TASK_STEPPING);
OFFSET_IS(exit_version, TASK_EXIT_VERSION);
OFFSET_IS(raised, TASK_RAISED);
OFFSET_IS(stack_start, TASK_STACK_START);
OFFSET_IS(stack_end, TASK_STACK_END);
OFFSET_IS(tool_memory, TASK_TOOL_MEMORY);
OFFSET_IS(guard, TASK_GUARD);

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct task *tasks;
static pthread_mutex_t ask_lock = PTHREAD_MUTEX_INITIALIZER; // who asks a thread for its registers
static sem_t stop_turn;    // who has it may stop the others; not a lock: it is handed on to others
static uint32_t stopped;   // futex word: not 0 while others must not become busy
static struct task *alone; // goes on although the others are stopped

enum { XFEATURE_TILES = 3 << 17 }; // AMX: needs a permission that the target asks for itself

void task_init_process(void) {
    unsigned a, b, c, d, low, high;
    sem_init(&stop_turn, 0, 1);
    task_displacement = (int32_t)((char *)&current_task - (char *)__builtin_thread_pointer());
    __cpuid(1, a, b, c, d);
    if (!(c & bit_OSXSAVE))
        fatal("this processor has no XSAVE");
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    xstate_features = ((uint64_t)high << 32 | low) & ~(uint64_t)XFEATURE_TILES;
    __cpuid_count(0xd, 1, a, b, c, d);
    xstate_has_xsaveopt = a & 1;
    // Size of the standard format up to the last feature that we save.
    xstate_size = 576;
    for (unsigned i = 2; i < 63; i++) {
        if (!(xstate_features & 1ull << i))
            continue;
        __cpuid_count(0xd, i, a, b, c, d);
        if (a + b > xstate_size)
            xstate_size = a + b;
    }
}

void task_init_thread(void) {
    size_t size = (xstate_size + 4095) & ~4095ul;
    self->xstate = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (self->xstate == MAP_FAILED)
        fatal("out of memory for a thread");
    *(uint16_t *)self->xstate = 0x37f;
    *(uint32_t *)(self->xstate + 24) = 0x1f80;
    self->flags = 0x202;
    self->pid = getpid();
    self->tid = syscall(SYS_gettid);
}

void task_free_thread(void) {
    munmap(self->xstate, (xstate_size + 4095) & ~4095ul);
    stack_t none = {.ss_flags = SS_DISABLE};
    syscall(SYS_sigaltstack, &none, NULL);
    munmap(self->host_altstack, 64 * 1024);
}

static int free_number(void) {
    for (int number = 1;; number++) {
        const struct task *task = tasks;
        while (task && task->number != number)
            task = task->next;
        if (!task)
            return number;
    }
}

void task_register(struct task *task) {
    pthread_mutex_lock(&list_lock);
    task->number = free_number();
    task->next = tasks;
    tasks = task;
    pthread_mutex_unlock(&list_lock);
}

void task_unregister(struct task *task) {
    pthread_mutex_lock(&list_lock);
    struct task **at = &tasks;
    while (*at != task)
        at = &(*at)->next;
    *at = task->next;
    pthread_mutex_unlock(&list_lock);
}

const struct task *task_first(void) {
    return tasks;
}

bool task_is_last(void) {
    pthread_mutex_lock(&list_lock);
    bool last = tasks == self && !self->next;
    pthread_mutex_unlock(&list_lock);
    return last;
}

bool task_shares_memory(void) {
    pthread_mutex_lock(&list_lock);
    const struct task *task = tasks;
    while (task && task->pid == self->pid)
        task = task->next;
    pthread_mutex_unlock(&list_lock);
    return task;
}

void task_lock_list(void) {
    pthread_mutex_lock(&list_lock);
}

void task_unlock_list(void) {
    pthread_mutex_unlock(&list_lock);
}

void task_forked(void) {
    pthread_mutex_init(&list_lock, NULL);
    pthread_mutex_init(&ask_lock, NULL);
    sem_init(&stop_turn, 0, 1);
    stopped = 0;
    alone = NULL;
    tasks = self;
    self->next = NULL;
    self->pid = getpid();
    self->tid = syscall(SYS_gettid);
}

// ---- stopping ----------------------------------------------------------------------------------

// `stopped` changes whenever another thread is let alone, so that nobody sleeps through that.
void task_become_busy(void) {
    for (;;) {
        uint32_t seen = __atomic_load_n(&stopped, __ATOMIC_SEQ_CST);
        __atomic_store_n(&self->busy, 1, __ATOMIC_SEQ_CST);
        // Before the look at `stopped`: who sets the bit after that waits for this thread.
        __atomic_and_fetch(&self->pending, ~PENDING_STOP, __ATOMIC_SEQ_CST);
        if (!__atomic_load_n(&stopped, __ATOMIC_SEQ_CST) || task_alone() == self)
            break;
        __atomic_store_n(&self->busy, 0, __ATOMIC_SEQ_CST);
        if (seen)
            syscall(SYS_futex, &stopped, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    }
}

void task_become_idle(void) {
    __atomic_store_n(&self->busy, 0, __ATOMIC_SEQ_CST);
}

bool task_interrupt(const struct task *task) {
    siginfo_t info = {.si_signo = ENGINE_SIGNAL, .si_code = ENGINE_SIGNAL_CODE};
    return !syscall(SYS_rt_tgsigqueueinfo, task->pid, task->tid, ENGINE_SIGNAL, &info);
}

struct task *task_alone(void) {
    return __atomic_load_n(&alone, __ATOMIC_SEQ_CST);
}

// Microseconds after which a thread that has not reacted is interrupted once more. By the clock:
// on a busy machine one turn of a loop that yields may take many milliseconds.
enum { INTERRUPT_AGAIN = 1000 };

static uint64_t microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool is_busy(const struct task *task) {
    return __atomic_load_n(&task->busy, __ATOMIC_SEQ_CST);
}

// A signal takes a thread out of the cache. False: the thread is gone.
static bool order_stop(struct task *task) {
    __atomic_or_fetch(&task->pending, PENDING_STOP, __ATOMIC_SEQ_CST);
    return !is_busy(task) || task_interrupt(task) || errno != ESRCH;
}

// It may have been about to enter the cache when the signal came, so it gets another now and then.
static void wait_for_stop(struct task *task) {
    uint64_t again = microseconds() + INTERRUPT_AGAIN;
    while (is_busy(task)) {
        if (microseconds() >= again) {
            if (!order_stop(task))
                return;
            again = microseconds() + INTERRUPT_AGAIN;
        }
        syscall(SYS_sched_yield);
    }
}

// With the turn. Returns when no other thread is busy.
static void stop_all_but_self(void) {
    __atomic_store_n(&stopped, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&list_lock);
    for (struct task *task = tasks; task; task = task->next)
        if (task != self)
            order_stop(task);
    for (struct task *task = tasks; task; task = task->next)
        if (task != self)
            wait_for_stop(task);
    pthread_mutex_unlock(&list_lock);
}

void task_stop_others(void) {
    task_become_idle();
    if (task_alone() == self)
        return;
    while (sem_wait(&stop_turn) != 0)
        ;
    stop_all_but_self();
}

bool task_try_stop_others(void) {
    if (task_alone() == self)
        return true;
    if (sem_trywait(&stop_turn) != 0)
        return false;
    stop_all_but_self();
    return true;
}

void task_end_others(void) {
    task_stop_others();
    __atomic_store_n(&alone, self, __ATOMIC_SEQ_CST);
}

static void set_stopped(uint32_t value) {
    __atomic_store_n(&stopped, value, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &stopped, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void task_let_alone(struct task *task) {
    __atomic_store_n(&alone, task, __ATOMIC_SEQ_CST);
    set_stopped(stopped + 1 ? stopped + 1 : 1);
}

void task_resume_others(void) {
    if (task_alone() == self)
        return;
    set_stopped(0);
    sem_post(&stop_turn);
}

void task_resume_all(void) {
    __atomic_store_n(&alone, NULL, __ATOMIC_SEQ_CST);
    task_resume_others();
}

// ---- asking ------------------------------------------------------------------------------------

enum { ASK_MOST = 2000000 }; // microseconds

// Who stops the others holds the list until all have stopped. A busy thread that it waits for must
// not wait for the list in turn, and need not: the list stays as it is as long as that thread is
// busy.
static bool lock_list_while_busy(void) {
    while (pthread_mutex_trylock(&list_lock)) {
        if (self->busy && __atomic_load_n(&self->pending, __ATOMIC_SEQ_CST) & PENDING_STOP)
            return false;
        syscall(SYS_sched_yield);
    }
    return true;
}

// Of a thread that is not busy they are in its task. Another one is interrupted, and its handler
// (signal/host.c) writes them down.
static bool ask(struct task *task, struct task_registers *registers) {
    uint64_t again = microseconds(), end = again + ASK_MOST;
    __atomic_store_n(&task->asked, 1, __ATOMIC_SEQ_CST);
    for (;;) {
        if (!__atomic_load_n(&task->asked, __ATOMIC_ACQUIRE)) {
            *registers = task->told;
            return true;
        }
        if (!is_busy(task)) {
            memcpy(registers->gpr, task->gpr, sizeof registers->gpr);
            registers->pc = task->pc;
            registers->exact = true;
            __atomic_store_n(&task->asked, 0, __ATOMIC_RELAXED);
            return true;
        }
        uint64_t now = microseconds();
        if (now > end)
            break;
        if (now >= again) {
            task_interrupt(task);
            again = now + INTERRUPT_AGAIN;
        }
        syscall(SYS_sched_yield);
    }
    __atomic_store_n(&task->asked, 0, __ATOMIC_RELAXED);
    return false;
}

int task_with_stack(uint64_t address, struct task_registers *registers, bool *known) {
    bool locked = lock_list_while_busy();
    struct task *task = tasks;
    while (task && address - task->stack_start >= task->stack_end - task->stack_start)
        task = task->next;
    int number = task ? task->number : 0;
    *known = false;
    if (task && task != self) {
        pthread_mutex_lock(&ask_lock);
        *known = ask(task, registers);
        pthread_mutex_unlock(&ask_lock);
    }
    if (locked)
        pthread_mutex_unlock(&list_lock);
    return number;
}
