#include "unwind_compare.h"

#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <unwind.h>

#include "unwind/unwind.h"

#define FRAMES_MAX 20000

struct frames {
    uint64_t pcs[FRAMES_MAX];
    bool exact[FRAMES_MAX];
    size_t count;
};

static struct unwind_space space;
static __thread struct unwind_thread thread __attribute__((tls_model("local-exec")));
static __thread struct frames ours, theirs;
static atomic_long walks, differences, deepest, beyond;

// A static executable does not say in memory where its unwind data is.
static void add_executable(void) {
    int file = open("/proc/self/exe", O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0)
        return;
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes != MAP_FAILED) {
        unwind_space_add_file(&space, bytes, (size_t)status.st_size, 0, true);
        munmap(bytes, (size_t)status.st_size);
    }
    close(file);
}

static int add_module(struct dl_phdr_info *info, size_t size, void *context) {
    struct unwind_image image;
    if (!unwind_image_from_headers(&image, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr))
        return 0;
    if (image.eh_frame)
        unwind_space_add(&space, &image);
    else
        add_executable();
    return 0;
}

// At first before any test: each may be run alone.
__attribute__((constructor)) void compare_setup(void) {
    if (!space.state)
        unwind_space_open(&space);
    unwind_space_remove(&space, 0, UINT64_MAX);
    dl_iterate_phdr(add_module, NULL);
}

struct compare_result compare_result(void) {
    struct compare_result result = {walks, differences, deepest, beyond};
    walks = differences = deepest = beyond = 0;
    return result;
}

long walk_guessed(void) {
    return (long)thread.counts.guessed;
}

static _Unwind_Reason_Code note_frame(struct _Unwind_Context *context, void *argument) {
    int exact = 0;
    uint64_t pc = _Unwind_GetIPInfo(context, &exact);
    if (pc == 0 || theirs.count == FRAMES_MAX)
        return _URC_END_OF_STACK;
    theirs.exact[theirs.count] = exact;
    theirs.pcs[theirs.count++] = pc;
    return _URC_NO_REASON;
}

static bool read_anywhere(void *context, uint64_t address, uint64_t *word) {
    struct iovec here = {word, sizeof *word}, there = {(void *)address, sizeof *word};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof *word;
}

static struct unwind_memory thread_memory(void) {
    static __thread uint64_t low, high;
    if (!high) {
        pthread_attr_t attributes;
        void *start;
        size_t size;
        pthread_getattr_np(pthread_self(), &attributes);
        pthread_attr_getstack(&attributes, &start, &size);
        pthread_attr_destroy(&attributes);
        low = (uint64_t)start;
        high = low + size;
    }
    return (struct unwind_memory){.low = low, .high = high, .read = read_anywhere};
}

// Compares our frames from one index on with theirs from another on.
static void compare_frames(size_t our, size_t their, enum unwind_end end) {
    walks++;
    // libgcc gives up in code that is not described: a linkage stub, seen directly or through the
    // frame of the signal that interrupted it.
    size_t known = theirs.count - their;
    if (known <= 2 && ours.count - our > known && end == UNWIND_END_BOTTOM &&
        memcmp(ours.pcs + our, theirs.pcs + their, known * 8) == 0) {
        beyond++;
        return;
    }
    bool same = ours.count - our == theirs.count - their && end == UNWIND_END_BOTTOM &&
                memcmp(ours.pcs + our, theirs.pcs + their, (ours.count - our) * 8) == 0;
    if ((long)ours.count > deepest)
        deepest = (long)ours.count;
    if (same || differences++ >= 3)
        return;
    printf("# walks differ (%s):", unwind_end_text(end));
    for (size_t i = 0; i < 12; i++)
        printf(" %lx/%lx", our + i < ours.count ? ours.pcs[our + i] : 0,
               their + i < theirs.count ? theirs.pcs[their + i] : 0);
    printf(" (%zu and %zu frames)\n", ours.count - our, theirs.count - their);
}

// Walks once more by single steps, which must find the same frames as the walk in one go.
static void compare_steps(const struct unwind_registers *registers,
                          const struct unwind_memory *memory, enum unwind_end end) {
    struct unwind_frame frame = {.registers = *registers, .exact = true};
    enum unwind_end why = UNWIND_END_COUNT;
    size_t count = 0;
    while (count < ours.count && frame.registers.value[UNWIND_PC] == ours.pcs[count]) {
        count++;
        why = unwind_step(&space, &frame, memory);
        if (why != UNWIND_END_COUNT)
            break;
    }
    if (count != ours.count || why != end)
        differences++;
}

__attribute__((noinline)) void compare_here(void) {
    struct unwind_registers registers;
    struct unwind_memory memory = thread_memory();
    enum unwind_end end;
    theirs.count = 0;
    _Unwind_Backtrace(note_frame, NULL);
    unwind_registers_here(&registers);
    ours.count = unwind_stack(&space, &thread, &registers, &memory, ours.pcs, FRAMES_MAX, &end);
    // Both start in this function, at different places in it.
    compare_frames(1, 1, end);
    compare_steps(&registers, &memory, end);
}

static void context_registers(const ucontext_t *context, struct unwind_registers *registers) {
    static const int order[UNWIND_REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (int i = 0; i < UNWIND_REGISTERS; i++)
        registers->value[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
}

size_t walk_interrupted(const ucontext_t *context, uint64_t *pcs, size_t max, int *end) {
    struct unwind_registers registers;
    struct unwind_memory memory = thread_memory();
    enum unwind_end why;
    context_registers(context, &registers);
    size_t count = unwind_stack(&space, &thread, &registers, &memory, pcs, max, &why);
    *end = why;
    return count;
}

static bool read_above(void *context, uint64_t address, uint64_t *word) {
    struct unwind_memory memory = thread_memory();
    if (address < *(const uint64_t *)context || address < memory.low || address > memory.high - 8)
        return false;
    memcpy(word, (const void *)address, sizeof *word);
    return true;
}

size_t walk_copied(const ucontext_t *context, uint64_t *pcs, size_t max, int *end) {
    struct unwind_frame frame = {.exact = true};
    context_registers(context, &frame.registers);
    uint64_t sp = frame.registers.value[UNWIND_RSP];
    struct unwind_memory memory = {.read = read_above, .context = &sp};
    enum unwind_end why = UNWIND_END_COUNT;
    size_t count = 0;
    while (count < max && why == UNWIND_END_COUNT) {
        pcs[count++] = frame.registers.value[UNWIND_PC];
        why = unwind_step(&space, &frame, &memory);
    }
    *end = why;
    return count;
}

void compare_interrupted(const ucontext_t *context) {
    int end;
    size_t first = 0;
    ours.count = walk_interrupted(context, ours.pcs, FRAMES_MAX, &end);
    theirs.count = 0;
    _Unwind_Backtrace(note_frame, NULL);
    while (first < theirs.count && !(theirs.exact[first] && theirs.pcs[first] == ours.pcs[0]))
        first++;
    compare_frames(0, first, (enum unwind_end)end);
}
