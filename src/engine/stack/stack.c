#include <pthread.h>
#include <sys/mman.h>

#include "engine/load/file.h"
#include "engine/memory/memory.h"
#include "engine/memory/target.h"
#include "engine/enter.h"
#include "engine/stack/stack.h"
#include "engine/memory/maps.h"
#include "engine/task.h"
#include "engine/tool.h"
#include "unwind/unwind.h"

unsigned stack_merged_frames;

// What a thread knows of its walks; self->unwinder is its first member.
struct unwinder {
    struct unwind_thread thread;
    struct unwind_recall recall;
};

static struct unwind_space space;
static bool is_open;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // taken inside the space lock

static bool read_word(void *context, uint64_t address, uint64_t *word) {
    return target_read(word, address, sizeof *word) == 0;
}

static void add_module(const struct mapped_code *code, void *unused) {
    struct elf_view file;
    uint64_t bias;
    if (!file_open(&file, code->path))
        return;
    if (elf_view_bias(&file, code->start, code->offset, &bias))
        unwind_space_add_file(&space, file.bytes, file.size, bias, true);
    file_close(&file);
}

static bool open_space(void) {
    if (__atomic_load_n(&is_open, __ATOMIC_ACQUIRE))
        return true;
    memory_read_lock();
    pthread_mutex_lock(&lock);
    if (!is_open && unwind_space_open(&space) == UNWIND_OK) {
        maps_for_each_code(0, UINT64_MAX, add_module, NULL);
        __atomic_store_n(&is_open, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    memory_unlock();
    return is_open;
}

void stack_module_mapped(const struct mapped_code *code) {
    pthread_mutex_lock(&lock);
    if (is_open) {
        unwind_space_remove(&space, code->start, code->end);
        add_module(code, NULL);
    }
    pthread_mutex_unlock(&lock);
}

void stack_module_gone(uint64_t start, uint64_t end) {
    pthread_mutex_lock(&lock);
    if (is_open)
        unwind_space_remove(&space, start, end);
    pthread_mutex_unlock(&lock);
}

void stack_thread_end(void) {
    if (self->unwinder)
        munmap(self->unwinder, sizeof(struct unwinder));
    self->unwinder = NULL;
}

void stack_forked(void) {
    pthread_mutex_init(&lock, NULL);
    if (is_open)
        unwind_space_after_fork(&space);
}

struct walk {
    struct unwind_registers registers;
    struct unwind_memory memory;
    uint64_t *pcs;
    size_t max, count;
};

// What follows is also called where vector registers are the target's.
#pragma GCC push_options
#pragma GCC target("general-regs-only")

static void set_registers(struct unwind_registers *registers, const uint64_t *gpr, uint64_t pc) {
    static const uint8_t numbers[UNWIND_REGISTERS] = {RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP,
                                                      R8,  R9,  R10, R11, R12, R13, R14, R15};
    for (unsigned i = 0; i < UNWIND_PC; i++)
        registers->value[i] = gpr[numbers[i]];
    registers->value[UNWIND_PC] = pc;
}

static void read_registers(struct unwind_registers *registers) {
    set_registers(registers, self->gpr, self->pc);
}

static void walk_quickly(void *argument) {
    struct walk *walk = argument;
    walk->count = unwind_stack_quickly(&space, self->unwinder, &walk->registers, &walk->memory,
                                       walk->pcs, walk->max);
}

// The part of its stack that a thread has in use can be read as it is, as a rule.
static bool is_on_own_stack(struct walk *walk) {
    uint64_t sp = self->gpr[RSP];
    walk->memory.low = walk->memory.high = sp;
    walk->memory.read = read_word;
    walk->memory.is_code = NULL;
    if (sp - self->stack_start >= self->stack_end - self->stack_start)
        return false;
    walk->memory.high = self->stack_end;
    return true;
}

size_t stack_of_task_quickly(uint64_t *pcs, size_t max) {
    struct walk walk;
    if (stack_merged_frames || !__atomic_load_n(&is_open, __ATOMIC_ACQUIRE) || !self->unwinder ||
        !is_on_own_stack(&walk))
        return 0;
    walk.pcs = pcs;
    walk.max = max;
    read_registers(&walk.registers);
    if (call_guarded(walk_quickly, &walk))
        return walk.count;
    unwind_abandon(self->unwinder);
    return 0;
}

static struct unwind_recall *recall_of_task(void) {
    return &((struct unwinder *)self->unwinder)->recall;
}

static void recollect(void *value) {
    const uint64_t *gpr = self->gpr;
    *(uint32_t *)value =
        unwind_recollect(recall_of_task(), &space, self->pc, gpr[RSP], gpr[RBP], self->stack_end);
}

uint32_t stack_recall(void) {
    uint64_t sp = self->gpr[RSP];
    uint32_t value = 0;
    if (!self->unwinder || stack_merged_frames ||
        sp - self->stack_start >= self->stack_end - self->stack_start ||
        !call_guarded(recollect, &value))
        return 0;
    return value;
}

void stack_note(const uint64_t *pcs, size_t count, uint32_t value) {
    struct unwind_registers registers;
    read_registers(&registers);
    if (self->unwinder)
        unwind_remember(recall_of_task(), self->unwinder, &registers, pcs, count, value);
}

#pragma GCC pop_options

static void walk_directly(void *argument) {
    struct walk *walk = argument;
    walk->count = unwind_stack(&space, self->unwinder, &walk->registers, &walk->memory, walk->pcs,
                               walk->max, NULL);
}

size_t stack_frames(const struct task_registers *from, uint64_t *pcs, uint64_t *ends, size_t max) {
    struct unwind_memory memory = {.read = read_word};
    struct unwind_frame frame = {.exact = true};
    size_t count = 0;
    if (!open_space())
        return 0;
    if (from)
        set_registers(&frame.registers, from->gpr, from->pc);
    else
        read_registers(&frame.registers);
    while (count < max) {
        pcs[count] = frame.registers.value[UNWIND_PC];
        if (unwind_step(&space, &frame, &memory) != UNWIND_END_COUNT)
            break;
        ends[count++] = frame.registers.value[UNWIND_RSP];
    }
    return count;
}

size_t stack_frames_to(uint64_t address, struct tool_stack_frame *frames, size_t max) {
    struct unwind_memory memory = {.read = read_word};
    struct unwind_frame frame = {.exact = true};
    bool is_trampoline = false;
    if (!open_space())
        return 0;
    read_registers(&frame.registers);
    for (size_t count = 0; count < max; count++) {
        struct tool_stack_frame *at = &frames[count];
        uint64_t start = frame.registers.value[UNWIND_RSP], zone = frame.exact ? RED_ZONE : 0;
        *at = (struct tool_stack_frame){.pc = frame.registers.value[UNWIND_PC] - !frame.exact,
                                        .start = start,
                                        .is_trampoline = is_trampoline};
        if (unwind_step(&space, &frame, &memory) != UNWIND_END_COUNT)
            return 0;
        at->end = frame.registers.value[UNWIND_RSP];
        is_trampoline = unwind_is_signal_frame(&space, frame.registers.value[UNWIND_PC]);
        at->is_handler = is_trampoline;
        if (address - (start - zone) < at->end - (start - zone))
            return count + 1;
    }
    return 0;
}

// A pc that was met a few frames before, and what lies between, is recursion: it is shown once.
static size_t merge(const uint64_t *pcs, size_t count) {
    for (size_t back = 1; back <= stack_merged_frames && back < count; back++)
        if (pcs[count - 1] == pcs[count - 1 - back])
            return count - back;
    return count;
}

// Goes on as far as it takes until there are as many frames as are wanted.
static size_t walk_merging(uint64_t *pcs, size_t max) {
    struct unwind_memory memory = {.read = read_word};
    struct unwind_frame frame = {.exact = true};
    size_t count = 0;
    read_registers(&frame.registers);
    while (count < max) {
        pcs[count] = frame.registers.value[UNWIND_PC];
        count = merge(pcs, count + 1);
        if (unwind_step(&space, &frame, &memory) != UNWIND_END_COUNT)
            break;
    }
    return count;
}

size_t stack_of_task(uint64_t *pcs, size_t max) {
    if (!open_space())
        return 0;
    if (stack_merged_frames)
        return walk_merging(pcs, max);
    if (!self->unwinder) {
        void *memory = mmap(NULL, sizeof(struct unwinder), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return 0;
        self->unwinder = memory;
    }
    struct walk walk = {.pcs = pcs, .max = max};
    read_registers(&walk.registers);
    if (is_on_own_stack(&walk)) {
        if (call_guarded(walk_directly, &walk))
            return walk.count;
        unwind_abandon(self->unwinder);
        walk.memory.high = walk.memory.low;
    }
    walk_directly(&walk);
    return walk.count;
}
