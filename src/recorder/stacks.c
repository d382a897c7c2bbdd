#include "recorder/recorder.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wire/wire_heap_table.h"

// The main thread's stack grows downwards; the kernel keeps at least this much free below its top.
#define MAIN_STACK (64ul << 20)

// A word of memory that may not be there: alternate signal stacks, coroutines.
static bool read_word(void *context, uint64_t address, uint64_t *word) {
    struct iovec to = {word, sizeof *word};
    struct iovec from = {(void *)address, sizeof *word};
    int saved = errno;
    bool got = syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0) == sizeof *word;
    errno = saved;
    return got;
}

static void find_stack(struct recorder_thread *thread, uint64_t here) {
    uint64_t low;
    uint64_t high;
    bool is_main;
    if (!modules_mapping(here, &low, &high, &is_main))
        return;
    thread->stack_low = is_main && high > MAIN_STACK ? high - MAIN_STACK : low;
    thread->stack_high = high;
}

// The words of a stack are its pcs, then frames of an interpreter.
struct words {
    const uint64_t *words;
    size_t count, frames;
    bool truncated;
};

static size_t word_count(const struct words *stack) {
    return stack->count + stack->frames * sizeof(struct python_frame) / sizeof(uint64_t);
}

static uint32_t intern(struct recorder_thread *thread, const struct words *stack) {
    bool is_new;
    uint64_t hash = wire_heap_hash(stack->words, word_count(stack), stack->truncated);
    uint32_t id = wire_heap_intern(recorder_area, hash, &is_new);
    if (is_new)
        record_stack(thread, id, stack->words, stack->count, stack->truncated, stack->frames);
    return id;
}

// Loops allocate with one stack time and again. Two stacks that differ do so near the inner end.
static uint32_t known_or_intern(struct recorder_thread *thread, const struct words *stack) {
    size_t size = word_count(stack);
    if (stack->count == thread->last_count && stack->frames == thread->last_frames &&
        stack->truncated == thread->last_truncated && thread->last_stack) {
        size_t i = 0;
        while (i < size && stack->words[i] == thread->last_words[i])
            i++;
        if (i == size)
            return thread->last_stack;
    }
    thread->last_stack = intern(thread, stack);
    thread->last_count = stack->count;
    thread->last_frames = stack->frames;
    thread->last_truncated = stack->truncated;
    memcpy(thread->last_words, stack->words, size * sizeof *stack->words);
    return thread->last_stack;
}

// A diverted function has called another one: the hook stands between them.
static void drop_own(struct recorder_thread *thread, struct words *stack) {
    size_t kept = 0;
    for (size_t i = 0; i < stack->count; i++)
        if (!modules_is_own(stack->words[i]))
            thread->words[kept++] = stack->words[i];
    stack->words = thread->words;
    stack->count = kept;
}

static void add_frames(struct recorder_thread *thread, struct words *stack) {
    memmove(thread->words, stack->words, stack->count * sizeof *stack->words);
    stack->words = thread->words;
    stack->frames =
        interpreters_frames(thread, (struct python_frame *)(thread->words + stack->count));
}

// What a walk has found: without this library's own frames, and no more of the others than is
// wanted, however the walk was made.
static uint32_t number_of(struct recorder_thread *thread, size_t count, bool truncated) {
    struct words stack = {thread->pcs, count, 0, truncated};
    while (stack.count && modules_is_own(*stack.words)) {
        stack.words++;
        stack.count--;
    }
    if (stack.count > (size_t)recorder_depth) {
        stack.count = (size_t)recorder_depth;
        stack.truncated = true;
    }
    if (UNLIKELY(families_is_inside()))
        drop_own(thread, &stack);
    if (UNLIKELY(interpreters_found()))
        add_frames(thread, &stack);
    return known_or_intern(thread, &stack);
}

// The walk from the frame of the function that the program has called: mostly along the frames of
// the walk before. False: it cannot be made this way.
static inline bool walk_callers(struct recorder_thread *thread, const uint64_t *frame,
                                uint32_t *stack) {
    struct unwind_memory memory = {.low = (uint64_t)frame, .high = thread->stack_high};
    if (memory.low < thread->stack_low || memory.low >= memory.high)
        return false;
    bool is_same;
    enum unwind_end end;
    size_t count =
        unwind_callers_quickly(&modules_space, &thread->unwind, frame, &memory, thread->pcs,
                               (size_t)recorder_depth + RECORDER_FRAMES, &end, &is_same);
    if (!count)
        return false;
    // An interpreter goes on without a change of the native stack.
    *stack = is_same && thread->last_stack && !interpreters_found()
                 ? thread->last_stack
                 : number_of(thread, count, unwind_end_is_truncated(end));
    return true;
}

static uint32_t walk_here(struct recorder_thread *thread) {
    struct unwind_registers registers;
    unwind_registers_here(&registers);
    uint64_t here = registers.value[UNWIND_RSP];
    if (UNLIKELY(!thread->stack_high))
        find_stack(thread, here);
    bool direct = here >= thread->stack_low && here < thread->stack_high;
    struct unwind_memory memory = {
        .low = here,
        .high = direct ? thread->stack_high : here,
        .read = read_word,
    };
    enum unwind_end end;
    size_t count = unwind_stack(&modules_space, &thread->unwind, &registers, &memory, thread->pcs,
                                (size_t)recorder_depth + RECORDER_FRAMES, &end);
    if (UNLIKELY(end == UNWIND_END_NO_MODULE) && count) {
        uint64_t page = thread->pcs[count - 1] >> 12;
        if (page != thread->unknown && modules_refresh())
            count = unwind_stack(&modules_space, &thread->unwind, &registers, &memory, thread->pcs,
                                 (size_t)recorder_depth + RECORDER_FRAMES, &end);
        thread->unknown = page;
    }
    bool truncated = unwind_end_is_truncated(end) &&
                     !(end == UNWIND_END_NO_RULE && modules_is_linker(thread->pcs[count - 1]));
    return number_of(thread, count, truncated);
}

uint32_t stacks_here(struct recorder_thread *thread, const uint64_t *frame) {
    uint32_t stack;
    // The linker allocates for what it has just mapped, before it runs any of it.
    if (frame && UNLIKELY(modules_is_linker(frame[1])))
        modules_loading();
    return frame && walk_callers(thread, frame, &stack) ? stack : walk_here(thread);
}
