// What a tool is to the engine, and what the engine offers a tool. The only header of the engine
// that tools include; src/tools/none is the smallest tool.
//
// Words
//   hook        a function of the tool that the engine calls; NULL: the tool does not care
//   to look at code   hooks run while a block is translated, once for each time it is translated,
//               not each time it runs; they insert what is to happen whenever it runs
//   inserted    code that runs before the instruction that the tool was shown
//   thread's state   memory of the tool's own for each thread, zeroed at its start
//
// Where hooks run: on the thread concerned, in C, with the target's registers saved
// (tool_register, tool_pc …), the whole C library at hand, never in a signal handler. Hooks that
// look at code hold the cache lock: they must not wait for other threads and must not call the
// target's code. Memory hooks run while the ledger of mappings is locked.
#ifndef QUERN_ENGINE_TOOL_H
#define QUERN_ENGINE_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/task_offsets.h"

// ---- code, as a tool sees it while it is translated ----

enum tool_flow {
    TOOL_NEXT,   // goes on to the next instruction
    TOOL_BRANCH, // may go elsewhere, by a condition
    TOOL_JUMP,
    TOOL_CALL,
    TOOL_RETURN,
    TOOL_SYSTEM, // a system call
};

struct tool_access {
    uint16_t size; // bytes; of a repeated string instruction: of one step
    bool reads, writes;
    // How its address is computed; see tool_access_address.
    int8_t base, index; // register numbers, -1: none
    uint8_t scale, segment;
    bool narrow; // 32-bit address
    bool scattered; // the address is not one (gathers)
    int64_t displacement;
};

enum { TOOL_ACCESSES = 4 };

struct tool_insn {
    uint64_t pc;
    unsigned size;
    const uint8_t *bytes;
    enum tool_flow flow;
    uint64_t target; // of a direct branch; 0: none, or not known before it runs
    bool repeats; // a string instruction with a rep prefix
    unsigned access_count;
    struct tool_access accesses[TOOL_ACCESSES]; // memory operands, the stack's included
};

// Decodes what lies elsewhere; false: no instruction. `bytes` is where they are put.
enum { TOOL_INSN_BYTES = 15 };
bool tool_look(uint64_t pc, struct tool_insn *, uint8_t bytes[TOOL_INSN_BYTES]);

struct tool_block; // the block being translated

typedef void tool_function(void *argument);

// Memory for an argument, which lasts as long as the block.
void *tool_allocate(size_t size);
// Calls fn(argument) at run time, with the target's state saved: anything may be done, at the price
// of saving it (a few hundred instructions).
void tool_insert_call(struct tool_block *, tool_function *fn, void *argument);
// Adds to a 64-bit counter in the thread's state, a few instructions.
void tool_insert_add(struct tool_block *, size_t offset, int32_t amount);

// ---- counting ----
//
// Each thread has words, which inserted code reaches with one operand, and counters, 64 bits each,
// whose place tool_set_counters chooses (at thread_started, and whenever it likes).

enum { TOOL_WORDS = 8 };
uint64_t *tool_thread_words(void);
void tool_set_counters(void *counters);
// The same by one instruction, on processors and kernels that permit it.
bool tool_can_set_counters_quickly(void);
static inline void tool_set_counters_quickly(void *counters) {
    __asm__ volatile("wrgsbase %0" : : "r"(counters));
}

// A count that has been inserted and is filled in when its values are known, before block_done
// returns.
struct tool_count {
    uint8_t *index_sites[2], *amount_sites[2];
    unsigned index_count, amount_count;
    uint8_t *start, *end; // of what does nothing if the amount is 0
};
// Adds 1 to a counter and an amount to a word.
void tool_insert_count(struct tool_block *, struct tool_count *, unsigned word);
// Adds an amount to a word; tool_fill_count with any index.
void tool_insert_word_count(struct tool_block *, struct tool_count *, unsigned word);
// Adds an amount to a word and to the counter at a distance from the one that the other word names.
void tool_insert_count_at(struct tool_block *, struct tool_count *, unsigned word,
                          unsigned index_word, uint32_t distance);
enum { TOOL_AMOUNT_MOST = 127 };
void tool_fill_count(const struct tool_count *, uint32_t index, uint8_t amount);
// From the instruction after this one on, signals and other threads' wishes wait (true) until an
// instruction that is not kept together with those before it (false): a count of several
// instructions holds for all of them.
void tool_keep_together(struct tool_block *, bool);
// Sets half a word: 0, the low one, or 1.
void tool_insert_set(struct tool_block *, unsigned word, unsigned half, uint32_t value);

// A call of a function that uses general registers only (no vector registers, no C library), at a
// tenth of the price of tool_insert_call. The target's registers are not at hand but rsp.
typedef void tool_fast_function(uint32_t argument, uint64_t rsp, void *thread_state);
enum tool_condition {
    TOOL_ALWAYS,
    TOOL_IF_TAKEN, // before a TOOL_BRANCH; not before loop and jrcxz: nothing is inserted
    TOOL_IF_NOT_TAKEN,
    TOOL_IF_WORD,  // if the low half of word 1 is not 0
};
void tool_insert_fast_call(struct tool_block *, enum tool_condition, tool_fast_function *,
                           uint32_t argument);
// The same for what is mostly little work, at a third of that price: the function is called only if
// `quick` returns false, having done nothing. A quick function saves the registers that it uses: so
// that there are few, it is not given what it can reach by itself.
#define TOOL_QUICK __attribute__((no_caller_saved_registers))
typedef TOOL_QUICK bool tool_quick_function(uint32_t argument);
void tool_insert_quick_call(struct tool_block *, enum tool_condition, tool_quick_function *quick,
                            tool_fast_function *, uint32_t argument);

struct task;
extern _Thread_local struct task current_task __attribute__((tls_model("local-exec")));
static inline uint64_t *tool_quick_field(unsigned offset) {
    return (uint64_t *)((char *)&current_task + offset);
}
// In a quick function: the thread's words, its state and the target's rsp, read whenever asked for.
static inline uint64_t *tool_quick_words(void) {
    return tool_quick_field(TASK_TOOL_WORDS);
}
static inline void *tool_quick_state(void) {
    return *(void **)tool_quick_field(TASK_TOOL);
}
static inline uint64_t tool_quick_rsp(void) {
    return *(volatile uint64_t *)tool_quick_field(TASK_SPILL + 8 * 4);
}

// ---- cache lines ----
//
// For tools that simulate caches. A line is a piece of memory; its number is its address divided by
// its size. Inserted code deals with lines that are in the cache:
//   recent   of each set, the line used last, as tool_used_line says. Using it again changes nothing
//   known    lines that are in the cache, each at the place that its number gives; using one sets its
//            stamp to the next tick of the clock and makes it the recent one of its set
// Everything else is a call of the tool.

enum tool_cache { TOOL_CACHE_CODE, TOOL_CACHE_DATA, TOOL_CACHES };
// Before any code is translated: a line has 1 << bits bytes, at least 16; sets: a power of two.
void tool_set_lines(enum tool_cache, unsigned bits, uint64_t sets);
void tool_used_line(enum tool_cache, uint64_t line); // may be called from a fast call

enum { TOOL_LINES = 2048 };
struct tool_lines {
    uint64_t clock;
    struct tool_line {
        uint64_t start; // address of its first byte; 0: none, or the line at address 0
        uint64_t *stamp;
    } known[TOOL_CACHES][TOOL_LINES]; // number % TOOL_LINES
};
// The calling thread's; before it runs any code. Nothing is recent yet.
void tool_set_thread_lines(struct tool_lines *);
// As tool_fast_function; `address` is the access's, or anything in a check of code.
typedef void tool_line_function(uint32_t argument, uint64_t rsp, void *thread_state,
                                uint64_t address);
void tool_insert_line_check(struct tool_block *, const struct tool_access *, tool_line_function *,
                            uint32_t argument);
void tool_insert_code_line_check(struct tool_block *, uint64_t line, tool_line_function *,
                                 uint32_t argument);
// Before an indirect jump or call: the address is where it leads.
void tool_insert_target_call(struct tool_block *, tool_line_function *, uint32_t argument);

// ---- accesses to heap blocks ----
//
// For tools that have an allocator of their own for the target and count accesses to its blocks.
// A block begins where its slot begins. Slots have 1 << bits bytes, TOOL_HEAP_LEAST <= bits <=
// TOOL_HEAP_MOST, and their address says so:
//   TOOL_HEAP_START + ((bits - 2) << TOOL_HEAP_CLASS_BITS) + (number << bits)
// A slot has a note, which begins as struct tool_heap_note. Notes lie from TOOL_HEAP_NOTES on, at
// tool_heap_note; nothing else does in the first 1 << TOOL_HEAP_NOTES_BITS bytes. The counters of
// single bytes, kept for slots of up to TOOL_HEAP_COUNTED_MOST bits, stop at 65535. The tool maps all
// of it, and calls tool_set_counters(TOOL_HEAP_NOTES) on each thread. Threads that touch one block at
// the same time may lose counts.
#define TOOL_HEAP_START    0x280000000000ul
#define TOOL_HEAP_END      0x300000000000ul
#define TOOL_HEAP_NOTES    0x401000000000ul
#define TOOL_HEAP_COUNTERS 0x4a0000000000ul // uint16_t, one for each byte from TOOL_HEAP_START on

enum {
    TOOL_HEAP_LEAST = 4,
    TOOL_HEAP_MOST = 37,
    TOOL_HEAP_COUNTED_MOST = 21,
    TOOL_HEAP_CLASS_BITS = 37,
    TOOL_HEAP_NOTES_BITS = 42,
    TOOL_HEAP_NOTE = 128,       // bytes
    TOOL_HEAP_PLACE_SHIFT = 21, // what of an address is above the area is shifted out
    // Additions to one place in memory wait for each other, so that there are several to add to;
    // which one an access uses depends on where it is in the code.
    TOOL_HEAP_LANES = 5,
};

// Ends are addresses << TOOL_HEAP_PLACE_SHIFT.
struct tool_heap_note {
    uint64_t counted_end; // 0: no counters are kept; the block's end otherwise
    uint64_t end;         // 0: there is no block
    uint64_t reads[TOOL_HEAP_LANES], writes[TOOL_HEAP_LANES]; // bytes, of accesses that begin in it
};

static inline uint64_t tool_heap_slot(unsigned bits, uint64_t number) {
    return TOOL_HEAP_START + ((uint64_t)(bits - 2) << TOOL_HEAP_CLASS_BITS) + (number << bits);
}

// Of an address in the heap.
static inline unsigned tool_heap_bits(uint64_t address) {
    return ((address - TOOL_HEAP_START) >> TOOL_HEAP_CLASS_BITS) + 2;
}

static inline uint64_t tool_heap_note(uint64_t address) {
    uint64_t slot = (address - TOOL_HEAP_START) >> tool_heap_bits(address);
    return TOOL_HEAP_NOTES + slot * TOOL_HEAP_NOTE;
}

// Accesses through the same registers are counted together, where the first of them is.
struct tool_heap_touch {
    uint16_t offset, size; // from the least address of the group
    uint8_t reads, writes; // how often, at most 2
};
struct tool_heap_group {
    uint16_t count;
    uint16_t size; // from the least address to the end of what is touched; 0: not counted in place
    struct tool_heap_touch touches[];
};
// Counts an access that reads so many times and then writes so many times. Of a group that does not
// lie within one block, the function is called: its argument is where the tool_heap_group lies, its
// address (the least one + the group's size) << TOOL_HEAP_PLACE_SHIFT.
void tool_insert_heap_access(struct tool_block *, const struct tool_access *, unsigned reads,
                             unsigned writes, tool_line_function *beyond);
// Anonymous memory for the target at this very place, not reserved; false: there is something.
bool tool_map_at(uint64_t start, size_t size);

// ---- the target's state, in inserted calls and in hooks about events ----

// Numbered as instructions encode them: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
uint64_t tool_register(unsigned number);
uint64_t tool_pc(void);
uint64_t tool_access_address(const struct tool_access *);
int tool_direction(void); // of string instructions: 1 or -1
int tool_thread_number(void); // as reports number threads, from 1
bool tool_own_stack(uint64_t *start, uint64_t *end); // that the thread was started on
uint64_t *tool_registers(void); // all 16
uint64_t tool_flags(void);
void *tool_thread_state(void);
uint64_t tool_thread_pointer(void); // fs
// The call stack, innermost pc first; returns how many.
size_t tool_stack(uint64_t *pcs, size_t max);
// The same with general registers only; 0: tool_stack must be asked.
size_t tool_stack_quickly(uint64_t *pcs, size_t max);
// What the thread has noted (not 0) of a stack that tool_stack_quickly had just given, always with the
// same max; 0: the stack must be walked. General registers only.
uint32_t tool_stack_recall(void);
void tool_stack_note(const uint64_t *pcs, size_t count, uint32_t value);
// Target memory that may not be there: 0 or -EFAULT.
long tool_read(void *to, uint64_t from, size_t size);
long tool_write(uint64_t to, const void *from, size_t size);
// Calls fn(argument), which may touch target memory as it likes. False: some of it was not there or
// not writable; fn went no further, and *address tells where. fn may be begun anew when a page that
// is watched for changes of code has been written to. General registers only.
bool tool_try(tool_function *fn, void *argument, uint64_t *address);
// In a TOOL_REPLACE hook: the function itself is to run after all.
void tool_run_itself(void);
// In a TOOL_REPLACE hook: the target gets the signal for what the last tool_try failed with, at the
// function's first instruction, instead of a result.
void tool_raise(void);

// ---- shadow memory ----
//
// A tool that sets `shadows` has a shadow byte for each byte of target memory, at a constant
// distance (the base of GS), mapped and unmapped with it, zero at first. It is no multiple of a page:
// a byte and its shadow would share the low bits of their addresses and stand in each other's way
// in the processor. Its higher bits matter as well: some processors find the way of a cache line by a
// few sums of address bits (12 and 27, 13 and 26, 14 and 25, 15 and 20 … 19 and 24 on Zen), and of two
// lines with the same sums each access to one makes the next to the other slow. With this distance,
// memory and the shadow of what lies nearby differ in them wherever they are.
#define TOOL_SHADOW_DISTANCE 0x200000155840ul

// What the engine tells apart when it is told which registers an instruction uses.
enum tool_unit {
    TOOL_UNIT_GENERAL = 0, // … 15
    TOOL_UNIT_FLAGS = 16,
    TOOL_UNIT_X87 = 17, // all of x87 and mmx
    TOOL_UNIT_MASK = 24,   // k0 … k7
    TOOL_UNIT_VECTOR = 32, // … 63
    TOOL_UNITS = 64,
};

// Whether all of a range lies where target memory has a shadow: a few mappings of the kernel's own
// choice do not.
bool tool_has_shadow(uint64_t start, size_t size);
// Whether only the engine has memory there.
bool tool_is_engines(uint64_t address);
// From `follow`, or from a function inside tool_try: the access under way is to such memory. It is
// not made, and the target gets the signal that it would get natively.
__attribute__((noreturn)) void tool_fault(uint64_t address, bool writes);
// Ones instead of zeros for the shadow of a range; large ranges cost no memory until written.
void tool_shadow_fill(uint64_t start, uint64_t end);
// Zeros; gives memory back where the range is large.
void tool_shadow_clear(uint64_t start, uint64_t end);

// Registers of an instruction, bits by enum tool_unit.
struct tool_units {
    uint64_t reads;  // what its outcome may depend on, addresses and partly overwritten registers
                     // included; not xor r,r and other idioms whose outcome does not
    uint64_t writes; // what it may change
    uint64_t kills;  // of those, what it overwrites entirely whatever happens
};
struct ZydisDecodedInstruction_;
struct ZydisDecodedOperand_;

// Calls fn(argument) from a function that must leave vector registers alone.
void tool_with_vectors(tool_function *fn, void *argument);

// ---- the target's memory and threads as a whole ----

struct tool_mapping {
    uint64_t start, end;
    int prot;
    bool is_stack; // the main thread's, or a thread's that has been created
    bool is_shared;
    bool is_file;
    bool is_module; // of an executable or library
    bool is_brk;
};
// The mapping that contains the address, or else the next one above. False: neither.
bool tool_mapping_at(uint64_t address, struct tool_mapping *);
// Anonymous memory for the target, readable and writable, from the area where its own mappings lie;
// 0: no room. Alignment: a power of two, at least a page. Not from memory hooks.
uint64_t tool_map(size_t size, size_t alignment);
void tool_unmap(uint64_t start, size_t size);

// Stops all other threads outside translated code. Between the two, no lock of the engine or the C
// library that another thread may hold can be waited for: allocate before.
void tool_stop_threads(void);
void tool_resume_threads(void);
struct tool_thread {
    int id;                    // as reports number threads, from 1
    const uint64_t *registers; // 16, in encoding order
    uint64_t pc, fs_base;
    void *state;
    uint64_t stack_start, stack_end; // 0, 0: not known
};
// The calling thread first; the others must be stopped.
void tool_each_thread(void (*)(const struct tool_thread *, void *), void *argument);
// The thread whose stack contains the address, the number of the frame (0: innermost) and its pc; of
// another thread, as it was a moment ago. frame -1: not known, or in the red zone below the innermost
// one, whose pc and end are told then. False: no stack.
struct tool_frame {
    int thread, frame;
    uint64_t pc;
    uint64_t end;  // of the frame: the stack pointer of its caller
    int64_t below; // bytes below the thread's stack pointer, 0: not below, or not known
};
bool tool_frame_of(uint64_t address, struct tool_frame *);
// Of the other thread that was started on the stack around the address: where its stack pointer was a
// moment ago. It is stopped for that. False: there is none, or it cannot be told for certain.
bool tool_stack_pointer_around(uint64_t address, uint64_t *stack_pointer);
// Frames of the calling thread from the innermost outward to the one that contains the address; a
// frame that calls no other may reach below its stack pointer. Returns how many; 0: none of the
// first `max` contains it.
struct tool_stack_frame {
    uint64_t pc;         // a return address less one, unless the frame is innermost or interrupted
    uint64_t start, end; // from its stack pointer to its caller's
    bool is_handler;     // called by the kernel for a signal
    bool is_trampoline;  // what a handler returns to: its end is the interrupted stack pointer
};
size_t tool_frames_to(uint64_t address, struct tool_stack_frame *frames, size_t max);

// ---- functions by symbol ----

enum tool_function_kind {
    TOOL_REPLACE, // hook runs instead; it sets the result (rax); the engine returns to the caller
    TOOL_WATCH,   // hook runs first, then the function itself
    TOOL_LOCATE,  // nothing happens but that its address is written to *located
};

// Stands for the program itself, if it defines malloc, calloc, realloc and free.
#define TOOL_PROGRAM "<program>"
// Stands for the program itself, whatever it defines.
#define TOOL_ANY_PROGRAM "<any program>"

// What a function that is to be replaced may try first, without all that a hook has at hand: its
// first three arguments come as such, `thread_state` is the thread's. Not done: it has changed
// nothing that the hook would not, which runs then. Memory that is not there, or not in that way, ends it as not done.
// It leaves vector registers alone and reports nothing; tool_register tells rsp.
struct tool_quick_result {
    uint64_t is_done;
    uint64_t result; // rax, defined
};
typedef struct tool_quick_result tool_quick_hook(uint64_t a, uint64_t b, uint64_t c,
                                                 void *thread_state);

struct tool_symbol {
    const char *module; // globs on the file's name without directory, divided by |
    const char *name;   // of the symbol, exactly; indirect functions (STT_GNU_IFUNC) too. Local
                        // symbols are not replaced but in statically linked programs
    enum tool_function_kind kind;
    void (*hook)(void);
    uint64_t *located;
};

// ---- the tool ----

// How the stack pointer has moved.
enum tool_stack_move {
    TOOL_STACK_LOADED = 1,    // from a register or memory: it may have gone to another stack
    TOOL_STACK_KEEPS_ZONE = 2 // the function goes on, and may read the 128 bytes below the pointer
};

// A function of a library, called before the process ends by exit, unless the option says no.
struct tool_exit_function {
    const char *name, *option;
};
enum { TOOL_EXIT_FUNCTIONS = 4 }; // at most

struct tool {
    const char *name;
    size_t thread_size;                // of the thread's state
    size_t register_size; // of that, what is about registers; it comes first
    bool shadows;                      // wants shadow memory
    bool counts_by_address; // the target is laid out as Valgrind does it (space/place.h)
    bool plain_hooks; // functions that replace others leave vector registers alone: called faster
    const struct tool_symbol *symbols; // ended by a NULL name
    tool_quick_hook *(*quick_hook)(void (*hook)(void)); // to be tried before the hook, or NULL

    const struct tool_exit_function *exit_functions; // in their order, ended by a NULL name
    void (*start)(void); // before the first instruction; options: tool_option
    void (*end)(void);   // the process is about to end, whatever the reason
    int (*exit_status)(int status); // after `end`, not for signals: the status it ends with

    // While code is translated.
    void (*block)(struct tool_block *, uint64_t pc);
    void (*instruction)(struct tool_block *, const struct tool_insn *);
    void (*block_done)(void); // the last instruction of the block has been shown

    // With shadow memory; the thread's state then begins with a byte for each unit, 1 if some of it
    // is undefined. An instruction that may meet undefined values is prepared once (NULL: nothing to
    // do about it) and followed each time just before it runs. The last two must leave vector
    // registers alone, and run with general registers at hand.
    struct tool_units (*units)(const struct ZydisDecodedInstruction_ *,
                               const struct ZydisDecodedOperand_ *);
    void *(*prepare)(uint64_t pc, const uint8_t *bytes, const struct ZydisDecodedInstruction_ *,
                     const struct ZydisDecodedOperand_ *);
    void (*forget_prepared)(void); // nothing that was prepared is used any more
    void (*follow)(const void *prepared);
    // The stack pointer has moved up, or was loaded; see enum tool_stack_move.
    void (*stack_moved)(uint64_t from, uint64_t to, unsigned how);

    // Events.
    void (*thread_started)(void);
    void (*forking)(void); // a fork is about to be made; other threads go on
    void (*fork_made)(void); // in the parent, also when it failed
    void (*forked)(void);    // in the child
    // The same for a child that shares memory: it runs on the parent's thread's state, which is put back
    // as it was after the first of these; other threads go on.
    void (*vforking)(void);
    void (*vforked)(void);    // in the child
    void (*vfork_made)(void); // in the parent, when the child is gone, also when there was none
    // Code of a file has been mapped. Its end is told by `unmapped`.
    void (*module)(uint64_t start, uint64_t end, uint64_t offset, const char *path);
    void (*thread_ended)(void);
    void (*before_system_call)(long number, const uint64_t arguments[6]);
    void (*after_system_call)(long number, const uint64_t arguments[6], long result);
    void (*mapped)(uint64_t start, uint64_t end, int prot);
    void (*unmapped)(uint64_t start, uint64_t end);
    void (*protected)(uint64_t start, uint64_t end, int prot);
    // The handler's frame has been made; alternate_stack: where that begins, 0: not used.
    void (*signal_delivered)(int number, uint64_t frame, uint64_t frame_end,
                             uint64_t alternate_stack);
    void (*signal_returned)(uint64_t frame); // registers are those that were interrupted
    // The instruction at tool_pc has touched memory that is not there; the processor does not tell
    // the address if it cannot exist.
    void (*faulted)(const void *prepared, uint64_t address, bool is_known);
    // It has jumped there; is_mapped: to memory that is not executable.
    void (*jumped_nowhere)(uint64_t address, bool is_mapped);
    // A client request (valgrind.h's numbering); true if *result is the answer.
    bool (*request)(const uint64_t words[6], uint64_t *result);
};

// Hands a memory file over to the supervisor half of the tool (WIRE_FILE), which mostly reads it when
// the process has ended. Its layout is the tool's own affair; seal it against shrinking. Once per
// process: a later file replaces the one before.
void tool_give_file(int fd);
// Hands over the area of wire_heap.h.
void tool_give_heap(int fd, uint64_t size);
// Asks for a report of that file while the process runs (or, if not, that it start from nought). The
// supervisor's answer is up to the file.
void tool_ask_report(bool report, const char *why);
// For tools that find errors (wire/findings.h): the ledger, and messages in two parts.
void tool_give_ledger(int fd);
void tool_send(unsigned type, const void *first, size_t first_size, const void *second,
               size_t second_size);
// An option's value, or NULL.
const char *tool_option(const char *name);
// Its next value after one of them; NULL: the first, or none.
const char *tool_option_next(const char *name, const char *previous);
// A line for the user, after ==PID==.
__attribute__((format(printf, 1, 2))) void tool_say(const char *format, ...);
// The same, with -q too; then the process ends with 1.
__attribute__((noreturn, format(printf, 1, 2))) void tool_give_up(const char *format, ...);
// A line that the program itself asked to print, after **PID**; then, if wanted, the call stack.
void tool_print(const char *text, bool with_stack);

#endif
