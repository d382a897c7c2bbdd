// Stack walking without frame pointers, fast enough for every malloc and safe in signal handlers.
//
// The call frame information (.eh_frame) of each module is compiled once into sorted rows. A walk
// looks up one row per frame, through a cache of the thread.
//
// Words:
//   module    an ELF image at a place in memory (image.h describes one).
//   table     the compiled rows of a module. It contains no addresses, only offsets from the
//             module's start, and is never freed.
//   rule      the content of a row: where the frame's CFA is and which registers are saved where.
//   CFA       canonical frame address: the stack pointer as it was before the call.
//   space     the modules of one address space.
//   thread    what one thread needs for walking: its cache and its counts.
//   exact     a pc at which execution really is: in the first frame, and in the frame that a
//             signal interrupted. A return address is not exact: its call lies before it.
//
// Who may call what from where:
//   - unwind_space_add and unwind_space_remove take a lock: not from signal handlers.
//   - Everything else is lock-free and async-signal-safe, also when the signal interrupted one of
//     those two. The first walk through a module compiles its table (milliseconds, raw mmap);
//     unwind_space_prepare does so in advance.
//   - A thread structure serves one thread. If a signal handler interrupts a walk of its thread and
//     walks as well, it finds the cache in use and works without it.
//   - A module's unwind data must stay readable until it is removed.
#ifndef QUERN_UNWIND_UNWIND_H
#define QUERN_UNWIND_UNWIND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/image.h"

// ---- registers, numbered as in DWARF ----

enum unwind_register {
    UNWIND_RAX,
    UNWIND_RDX,
    UNWIND_RCX,
    UNWIND_RBX,
    UNWIND_RSI,
    UNWIND_RDI,
    UNWIND_RBP,
    UNWIND_RSP,
    UNWIND_R8,
    UNWIND_R9,
    UNWIND_R10,
    UNWIND_R11,
    UNWIND_R12,
    UNWIND_R13,
    UNWIND_R14,
    UNWIND_R15,
    UNWIND_PC,
    UNWIND_REGISTERS
};

struct unwind_registers {
    uint64_t value[UNWIND_REGISTERS];
};

// The registers at this place, as far as a walk that starts with a call needs them. One block of
// code reads stack pointer and pc, so that the stack pointer cannot move in between.
static inline __attribute__((always_inline)) void
unwind_registers_here(struct unwind_registers *registers) {
    *registers = (struct unwind_registers){0};
    __asm__ volatile("movq %%rbx, 24(%0)\n\t"
                     "movq %%rbp, 48(%0)\n\t"
                     "movq %%rsp, 56(%0)\n\t"
                     "movq %%r10, 80(%0)\n\t"
                     "movq %%r12, 96(%0)\n\t"
                     "movq %%r13, 104(%0)\n\t"
                     "movq %%r14, 112(%0)\n\t"
                     "movq %%r15, 120(%0)\n\t"
                     "leaq (%%rip), %%rax\n\t"
                     "movq %%rax, 128(%0)"
                     :
                     : "r"(registers->value)
                     : "rax", "memory");
}

// ---- memory of the stack that is walked ----

struct unwind_memory {
    // Walks read [low, high) directly: a stack, or the part of it that is known to be mapped.
    uint64_t low, high;
    // Reads a word elsewhere (alternate signal stacks, coroutines). False: not readable.
    // NULL: a walk that leaves the bounds ends.
    bool (*read)(void *context, uint64_t address, uint64_t *word);
    // Whether an address outside all modules may be code (a JIT compiler's). NULL: unknown.
    bool (*is_code)(void *context, uint64_t address);
    void *context;
};

// ---- modules ----

struct unwind_table;
struct unwind_space_state;

struct unwind_space {
    struct unwind_space_state *state;
};

// The errors of a module that a caller can handle.
enum unwind_status { UNWIND_OK, UNWIND_NO_MEMORY, UNWIND_TOO_MANY, UNWIND_OVERLAP, UNWIND_NOT_ELF };

enum unwind_status unwind_space_open(struct unwind_space *space);

// Only when no thread uses the space any more.
void unwind_space_close(struct unwind_space *space);

// Adds a mapped module; its table is compiled when first needed. A module that overlaps another one
// is refused: remove unmapped modules first. Static executables may have no .eh_frame_hdr, and then
// image->eh_frame is 0: only their file says where the unwind data is.
enum unwind_status unwind_space_add(struct unwind_space *space, const struct unwind_image *image);

// Adds a module by the contents of its file. The caller may free these afterwards. mapped says that
// the module's code is in this process, at the addresses that it has with this bias.
enum unwind_status unwind_space_add_file(struct unwind_space *space, const void *bytes, size_t size,
                                         uint64_t bias, bool mapped);

// Removes every module that overlaps [start, end). Returns their number.
size_t unwind_space_remove(struct unwind_space *space, uint64_t start, uint64_t end);

// Compiles the table of the module at an address now. False: no module, or no usable table.
bool unwind_space_prepare(struct unwind_space *space, uint64_t address);

// A forked child calls this first, because another thread may have held the lock.
void unwind_space_after_fork(struct unwind_space *space);

// Whether pc is in a signal trampoline: the next frame's pc is then exact.
bool unwind_is_signal_frame(struct unwind_space *space, uint64_t pc);

struct unwind_sizes {
    size_t bytes;      // of memory, all included
    size_t rows;       // in the table
    size_t rules;      // distinct rules in the short form
    size_t wide_rules; // distinct rules in the long form
    size_t functions;  // FDEs compiled
    size_t bad;        // FDEs that are unusable, in whole or in part
};

// Sizes of the table of the module at an address, compiled if need be.
bool unwind_space_sizes(struct unwind_space *space, uint64_t address, struct unwind_sizes *sizes);

// ---- walking ----

// Why a walk ended. All but the first two mean that the stack was cut short.
#define UNWIND_ENDS(X)                                                                             \
    X(BOTTOM, "bottom of the stack")                                                               \
    X(LIMIT, "frame limit reached")                                                                \
    X(NO_MODULE, "code outside all modules")                                                       \
    X(NO_RULE, "code without unwind information")                                                  \
    X(UNREADABLE, "stack memory not readable")                                                     \
    X(NO_PROGRESS, "frames do not rise")                                                           \
    X(BAD_RULE, "unwind information not usable")

enum unwind_end {
#define X(name, text) UNWIND_END_##name,
    UNWIND_ENDS(X)
#undef X
        UNWIND_END_COUNT
};

const char *unwind_end_text(enum unwind_end end);

static inline bool unwind_end_is_truncated(enum unwind_end end) {
    return end != UNWIND_END_BOTTOM && end != UNWIND_END_LIMIT;
}

struct unwind_counts {
    uint64_t walks;
    uint64_t frames;
    uint64_t guessed; // frames found by the frame pointer, without unwind information
    uint64_t missed;  // frames whose rule was not in the cache
    uint64_t ends[UNWIND_END_COUNT];
};

// A rule in the form that nearly all rows need: the return address is at CFA - 8 and each saved
// register at CFA - 8 * slot.
struct unwind_rule {
    int32_t offset;   // CFA is base + offset; for a wide rule: its index
    uint8_t kind;     // enum unwind_rule_kind
    uint8_t base;     // register number
    uint8_t signal;   // 1: a signal frame
    uint8_t deepest;  // the largest slot, at least 1
    uint8_t slots[6]; // rbx, rbp, r12 to r15; 0: not saved
    uint16_t reserved;
};

#define UNWIND_CACHE_BITS 10
#define UNWIND_CACHE_SIZE (1u << UNWIND_CACHE_BITS)

struct unwind_cache_entry {
    uint64_t pc; // as looked up; 0: empty
    struct unwind_rule rule;
    const struct unwind_table *table;
};

// A frame of the last walk. When the thread's next walk reaches the same place in the stack, it
// looks up no further rules: it compares the words in memory that led from frame to frame.
struct unwind_kept {
    uint64_t pc, sp, rbp;
    uint64_t rbp_at; // where rbp was read; 0: it is the inner frame's. pc was read at sp - 8
};

#define UNWIND_KEPT_MAX 160

// All zero is a valid first state. It is large (40 KiB), so map it. It does not fit on the stack of
// a signal handler. Static thread-local storage would take it from every thread's stack, and
// programs with small stacks (node) could not create threads.
struct unwind_thread {
    struct unwind_counts counts;
    uint64_t generation; // of the space, when the cache was last emptied
    atomic_bool walking;
    // The outermost frames of the last walk that reached the bottom or its limit, at the end of the
    // array.
    size_t kept_count;
    uint64_t kept_high; // end of the stack that they are on
    bool kept_bottom;   // the last of them is the bottom of the stack
    bool kept_all;      // they are exactly the frames of the thread's last walk
    bool kept_first;    // the walk before was a quick one, and they begin with its callers
    size_t kept_frames; // number of pcs of that walk
    struct unwind_kept kept[UNWIND_KEPT_MAX];
    struct unwind_kept fresh[UNWIND_KEPT_MAX]; // of the walk in progress
    _Alignas(64) struct unwind_cache_entry cache[UNWIND_CACHE_SIZE];
};

// Walks a stack. Writes at most max pcs and returns their number. The first pc is the one in
// registers; the others are return addresses as they stand on the stack. end, if not NULL, says why
// the walk ended.
size_t unwind_stack(struct unwind_space *space, struct unwind_thread *thread,
                    const struct unwind_registers *registers, const struct unwind_memory *memory,
                    uint64_t *pcs, size_t max, enum unwind_end *end);

// The same for a walk whose steps are all in the cache and stay within [low, high). It uses only
// general registers, allocates nothing and never waits. For any other walk it returns 0.
size_t unwind_stack_quickly(struct unwind_space *space, struct unwind_thread *thread,
                            const struct unwind_registers *registers,
                            const struct unwind_memory *memory, uint64_t *pcs, size_t max);

// The same, from the caller of a function with a frame pointer, which points to the caller's rbp
// and the return address above it. The walk does not know other registers: a rule that needs one
// ends it. `is_same`: the pcs are those of the thread's last walk and are not written again.
size_t unwind_callers_quickly(struct unwind_space *space, struct unwind_thread *thread,
                              const uint64_t *frame, const struct unwind_memory *memory,
                              uint64_t *pcs, size_t max, enum unwind_end *end, bool *is_same);

// Remembered walks. The start of a walk and the words of the stack that lead from frame to frame
// determine its result. If all of them are unchanged, the caller can use the value that it stored
// for that walk, without walking again. All zero is a valid first state.
#define UNWIND_RECALL_BITS  6 // of the number of sets
#define UNWIND_RECALL_WAYS  4 // walks from the same place with different outer callers
#define UNWIND_RECALL_WORDS 24

struct unwind_recalled {
    uint64_t pc, sp, rbp, high, generation;
    uint32_t value; // 0: empty
    uint16_t count; // of words
    bool wants_rbp; // rbp determines a frame
    struct {
        const uint64_t *at;
        uint64_t word;
    } words[UNWIND_RECALL_WORDS];
};

struct unwind_recall {
    struct unwind_recalled entries[1u << UNWIND_RECALL_BITS][UNWIND_RECALL_WAYS];
    uint8_t next[1u << UNWIND_RECALL_BITS]; // for each set, the way to replace next
};

// Stores a value, not 0, for the walk that unwind_stack_quickly has just made, if possible.
void unwind_remember(struct unwind_recall *recall, const struct unwind_thread *thread,
                     const struct unwind_registers *registers, const uint64_t *pcs, size_t count,
                     uint32_t value);
// The value stored for a walk from here that ends at or before `high`; 0: unknown. Reads the stack.
// Uses general registers only.
uint32_t unwind_recollect(const struct unwind_recall *recall, struct unwind_space *space,
                          uint64_t pc, uint64_t sp, uint64_t rbp, uint64_t high);

// Call this after a jump out of a walk of the thread.
void unwind_abandon(struct unwind_thread *thread);

// A walk by single steps, for callers that need the registers of each frame.
struct unwind_frame {
    struct unwind_registers registers;
    bool exact;   // true for the frame that a walk starts with
    bool guessed; // found by the frame pointer
};

// Turns a frame into its caller's. Returns UNWIND_END_COUNT on success. Any other value says why
// there is no caller; the frame is then unchanged. It does not use or count in a thread structure.
enum unwind_end unwind_step(struct unwind_space *space, struct unwind_frame *frame,
                            const struct unwind_memory *memory);

#endif
