// The stack pointer has moved: what lies below it is released, unless it has gone to another stack.
//
// Programs switch stacks by hand (coroutines, fibers, Go), and stacks may lie side by side. How far
// up the stack reaches that a thread runs on is known: its own to its end, an announced one to its
// end, any other at least to the highest place from where or to where the stack pointer has been
// moved since it came there (stack_reach). Where that is left by an instruction that loads the
// stack pointer, it has gone to another stack; and so it has when it was loaded with a lower
// address. A mistake (a jump out of frames that were there before this stack was left and entered
// again) releases too little, which makes no report that is false.
//
// Stacks that the target has announced, or given to makecontext, are kept in order of address under
// a lock that is held for a few instructions only: the stack pointer moves all the time.
#include <stdatomic.h>
#include <stdlib.h>

#include "tools/memcheck/target/shadow/frames.h"
#include "base/in_target.h"
#include "base/search.h"
#include "base/x86.h"
#include "tools/memcheck/target/memcheck.h"
#include "tools/memcheck/target/shadow/shadow.h"

uint64_t memcheck_max_frame = 2000000;

struct known_stack {
    uint64_t start, end;
    uint64_t number; // 0: nobody has asked for one
    bool is_fresh;   // it has not been run on yet
};

static struct known_stack *stacks;
static atomic_size_t stack_count;
static size_t stack_room;
static atomic_flag is_locked = ATOMIC_FLAG_INIT;

static void lock(void) {
    while (atomic_flag_test_and_set_explicit(&is_locked, memory_order_acquire))
        __builtin_ia32_pause();
}

static void unlock(void) {
    atomic_flag_clear_explicit(&is_locked, memory_order_release);
}

// ---- known stacks ------------------------------------------------------------------------------

// How many begin at the address or below.
static size_t stacks_up_to(uint64_t address) {
    return search_first(at, 0, stack_count, stacks[at].start > address);
}

static struct known_stack *stack_at(uint64_t address) {
    size_t count = stacks_up_to(address);
    return count && address <= stacks[count - 1].end ? &stacks[count - 1] : NULL;
}

static void remove_at(size_t index) {
    stack_count--;
    for (size_t i = index; i < stack_count; i++)
        stacks[i] = stacks[i + 1];
}

static void insert(struct known_stack new) {
    struct known_stack *more = NULL, *old = NULL;
    if (stack_count + 1 > stack_room) // as good as certain: others rarely come in between
        more = slow_allocate(2 * (stack_room + 8) * sizeof *more);
    lock();
    size_t index = stacks_up_to(new.start);
    if (index && stacks[index - 1].end > new.start)
        remove_at(--index);
    while (index < stack_count && stacks[index].start < new.end)
        remove_at(index);
    if (stack_count == stack_room && more) {
        for (size_t i = 0; i < stack_count; i++)
            more[i] = stacks[i];
        old = stacks;
        stacks = more;
        more = NULL;
        stack_room = 2 * (stack_room + 8);
    }
    if (stack_count < stack_room) {
        for (size_t i = stack_count; i > index; i--)
            stacks[i] = stacks[i - 1];
        stacks[index] = new;
        stack_count++;
    }
    unlock();
    slow_free(old);
    slow_free(more);
}

static void announce(uint64_t number, uint64_t start, uint64_t end) {
    if (start > end)
        insert((struct known_stack){end, start, number, true});
    else
        insert((struct known_stack){start, end, number, true});
}

uint64_t frames_register(uint64_t start, uint64_t end) {
    static atomic_ulong last_number;
    uint64_t number = ++last_number;
    announce(number, start, end);
    return number;
}

void frames_deregister(uint64_t number) {
    lock();
    for (size_t i = stack_count; i-- > 0;)
        if (stacks[i].number == number)
            remove_at(i);
    unlock();
}

void frames_change(uint64_t number, uint64_t start, uint64_t end) {
    frames_deregister(number);
    announce(number, start, end);
}

// makecontext(context, …): whatever the new stack holds is of no use to anybody.
static void on_makecontext(void) {
    enum { RDI = 7, STACK_AT = 16 };
    struct {
        uint64_t start;
        int flags;
        uint64_t size;
    } stack;
    if (tool_read(&stack, tool_register(RDI) + STACK_AT, sizeof stack) || !stack.size)
        return;
    insert((struct known_stack){stack.start, stack.start + stack.size, 0, false});
    shadow_make_undefined(stack.start, stack.size);
}

const struct tool_symbol frame_symbols[] = {
    {"libc.so*|libc-*.so|" TOOL_PROGRAM, "makecontext", TOOL_WATCH, on_makecontext, NULL},
    {0},
};

// ---- moves -------------------------------------------------------------------------------------

enum move { MOVE_UNKNOWN, MOVE_WITHIN, MOVE_ELSEWHERE };

// What is known of announced stacks; *unused: the lowest address of one that is entered first, else
// 0.
static enum move judge(uint64_t from, uint64_t to, uint64_t *unused) {
    *unused = 0;
    lock();
    struct known_stack *old = stack_at(from), *new = stack_at(to);
    if (new &&new != old &&new->is_fresh) {
        *unused = new->start;
        new->is_fresh = false;
    }
    enum move move = old != new ? MOVE_ELSEWHERE : old ? MOVE_WITHIN : MOVE_UNKNOWN;
    unlock();
    return move;
}

// Of a stack pointer that was loaded.
static enum move judge_by_reach(uint64_t from, uint64_t to) {
    uint64_t start, end, reach = memcheck_thread()->stack_reach;
    if (tool_own_stack(&start, &end)) {
        bool was_own = from - start <= end - start, is_own = to - start <= end - start;
        if (was_own && is_own)
            return MOVE_UNKNOWN;
        if (was_own || is_own)
            return MOVE_ELSEWHERE;
    }
    if (reach < from)
        reach = from; // frames were left that had been there before
    return to < from || to > reach ? MOVE_ELSEWHERE : MOVE_WITHIN;
}

// The red zone below `from` goes, and with it all that is not part of the zone below `to`, if that
// one keeps its contents.
static void release(uint64_t from, uint64_t to, bool keeps_zone) {
    uint64_t start = from - RED_ZONE, end = keeps_zone ? to - RED_ZONE : to;
    shadow_make_undefined(start, end - start);
}

void memcheck_stack_moved(uint64_t from, uint64_t to, unsigned how) {
    enum move move = MOVE_UNKNOWN;
    if (atomic_load_explicit(&stack_count, memory_order_relaxed)) {
        uint64_t unused;
        move = judge(from, to, &unused);
        if (unused && unused < to - RED_ZONE)
            shadow_make_undefined(unused, to - RED_ZONE - unused);
    }
    if (how & STACK_LOADED) {
        struct memcheck_thread *thread = memcheck_thread();
        if (move == MOVE_UNKNOWN)
            move = judge_by_reach(from, to);
        if (move == MOVE_ELSEWHERE || thread->stack_reach < from)
            thread->stack_reach = move == MOVE_ELSEWHERE ? to : from;
    }
    if (to <= from || move == MOVE_ELSEWHERE ||
        (move == MOVE_UNKNOWN && to - from > memcheck_max_frame))
        return;
    release(from, to, how & STACK_KEEPS_ZONE);
}

// ---- other threads -----------------------------------------------------------------------------

// Stacks of threads by their numbers, as far as there is room: a look without a lock.
enum { ROOM = 64, QUESTIONS = 1000 };

static struct { _Atomic uint64_t start, end; } own_stacks[ROOM];
static atomic_uint most_threads; // the highest number, plus one
static atomic_int questions_left = QUESTIONS;

void frames_thread_started(void) {
    unsigned number = tool_thread_number();
    uint64_t start, end;
    if (number >= ROOM || !tool_own_stack(&start, &end))
        return;
    atomic_store(&own_stacks[number].start, start);
    atomic_store(&own_stacks[number].end, end);
    unsigned most = atomic_load(&most_threads);
    while (most <= number && !atomic_compare_exchange_weak(&most_threads, &most, number + 1))
        continue;
}

void frames_thread_ended(void) {
    unsigned number = tool_thread_number();
    if (number < ROOM)
        atomic_store(&own_stacks[number].end, 0);
}

void frames_forked(void) {
    unsigned own = tool_thread_number();
    unlock();
    for (unsigned i = 0; i < ROOM; i++)
        if (i != own)
            atomic_store(&own_stacks[i].end, 0);
}

// The number of the other thread whose stack it is, 0: none.
static unsigned thread_around(uint64_t address) {
    unsigned own = tool_thread_number(),
             most = atomic_load_explicit(&most_threads, memory_order_relaxed);
    for (unsigned i = 1; i < most; i++)
        if (i != own && address >= own_stacks[i].start && address < own_stacks[i].end)
            return i;
    return 0;
}

struct question {
    uint64_t address;
    unsigned thread;
    bool is_below;
};

static void ask(void *argument) {
    enum { NO_ANSWER = 100 }; // it may have taken long
    struct question *question = argument;
    uint64_t pointer, start = own_stacks[question->thread].start;
    if (!tool_stack_pointer_around(question->address, &pointer)) {
        atomic_fetch_sub(&questions_left, NO_ANSWER);
        return;
    }
    // A thread that has gone to another stack has left its own at a place that is not known.
    lock();
    bool is_elsewhere = pointer - start > own_stacks[question->thread].end - start;
    is_elsewhere |= stack_at(pointer) != NULL;
    unlock();
    question->is_below = !is_elsewhere && question->address < pointer - RED_ZONE;
}

bool frames_is_below_other(uint64_t address) {
    struct question question = {.address = address};
    if (atomic_load_explicit(&most_threads, memory_order_relaxed) <= 2 ||
        atomic_load_explicit(&questions_left, memory_order_relaxed) <= 0)
        return false;
    question.thread = thread_around(address);
    if (!question.thread)
        return false;
    atomic_fetch_sub(&questions_left, 1);
    tool_with_vectors(ask, &question);
    return question.is_below;
}
