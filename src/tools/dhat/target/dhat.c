// The tool: hooks of the engine. Accesses are counted where they happen, instructions where a run
// of them begins.
#include <string.h>

#include "tools/dhat/target/dhat.h"
#include "tools/shared/allocators.h"
#include "tools/shared/syscalls/pass.h"
#include "tools/tools.h"
#include "wire/heap_requests.h"

enum dhat_mode dhat_mode;

_Static_assert(DHAT_AT_HEADER >= 1ul << HEAP_NOTES_BITS, "");

enum { SYMBOLS = 256 };
static struct tool_symbol symbols[SYMBOLS]; // all that is replaced

// ---- code --------------------------------------------------------------------------------------

static struct {
    bool is_open;
    unsigned count, word;
    struct tool_count inserted;
} run; // of instructions, under construction

static void close_run(void) {
    if (run.is_open)
        tool_fill_count(&run.inserted, 0, run.count);
    run.is_open = false;
}

static void on_instruction(struct tool_block *block, const struct tool_insn *insn) {
    if (!run.is_open) {
        run.is_open = true;
        run.count = 0;
        // Additions to the same word would wait for each other.
        tool_insert_word_count(block, &run.inserted, run.word++ % TOOL_WORDS);
    }
    run.count++;
    if (dhat_mode == DHAT_HEAP)
        touches_insert(block, insn);
    heap_end_instruction(block, insn->flow == TOOL_NEXT);
    if (insn->flow != TOOL_NEXT)
        close_run();
}

static void on_block_end(struct tool_block *block) {
    close_run();
    heap_end_block(block);
}

// ---- events ------------------------------------------------------------------------------------

static void on_thread_started(void) {
    struct dhat_thread *thread = tool_thread_state();
    thread->words = tool_thread_words();
    memset(thread->words, 0, TOOL_WORDS * sizeof *thread->words);
    thread->told = 0;
    events_thread_started(thread);
    tool_set_counters((void *)HEAP_NOTES);
}

static void on_thread_ended(void) {
    slots_thread_ended(tool_thread_state());
    events_thread_ended(tool_thread_state());
}

static void count_read(const struct pass *pass, uint64_t address, uint64_t size, const char *name,
                       va_list words) {
    touch_read(address, size);
}

// As Valgrind tells its tools: without the first character and the end.
static void count_string(const struct pass *pass, uint64_t address, const char *name,
                         va_list words) {
    uint64_t at = address + 1;
    char byte;
    while (pass_read(&byte, at, 1) && byte)
        at++;
    touch_read(address, at - address - 1);
}

static const struct syscalls_user syscalls_user = {
    .reads = count_read, .reads_string = count_string, .wrote = touch_write};

static void before_system_call(long number, const uint64_t arguments[6]) {
    if (dhat_mode == DHAT_HEAP)
        syscalls_before(&syscalls_user, number, arguments, false);
}

static void after_system_call(long number, const uint64_t arguments[6], long result) {
    if (dhat_mode == DHAT_HEAP)
        syscalls_after(&syscalls_user, number, arguments, result);
}

// dhat.h
enum { REQUEST_EVENT = 0x44480000, REQUEST_HISTOGRAM = 0x44480001 };

static void add_event(uint64_t weight) {
    uint32_t point = point_here();
    if (point)
        events_add(point, weight);
}

// Counts single bytes of a block that is too large for that as a rule.
static void count_bytes_of(uint64_t address) {
    struct dhat_note *note = note_of(address);
    bool is_inside = note && address - slot_start(address) < note->size;
    uint64_t size = is_inside ? note->size : 0;
    if (size > 1024 && size <= DHAT_ACCESSES_MOST && !note->counted_end) {
        memset(counters_of(slot_start(address)), 0, 2 * size);
        note->counted_end = note->end;
    }
    if (!is_inside)
        tool_say("Warning: address for user histogram request not found %lx", address);
    else if (size <= 1024 || size > DHAT_ACCESSES_MOST)
        tool_say("Warning: request for user histogram of size %lu is %s, request ignored", size,
                 size <= 1024 ? "smaller than the normal histogram limit"
                              : "larger than the maximum user request limit");
}

static bool on_request(const uint64_t words[6], uint64_t *result) {
    // Accesses are counted in blocks of the heap only: objects of pools shall be such.
    if (words[0] == HEAP_REQUEST_LISTENS && dhat_mode == DHAT_HEAP) {
        *result = 2;
        return true;
    }
    *result = 0;
    if (words[0] == REQUEST_EVENT && dhat_mode == DHAT_AD_HOC)
        add_event(words[1]);
    else if (words[0] == REQUEST_HISTOGRAM && dhat_mode == DHAT_HEAP)
        count_bytes_of(words[1]);
    else
        return false;
    return true;
}

// ---- start and end -----------------------------------------------------------------------------

// Adds them behind those that are there; returns how many there are then.
static size_t add_symbols(size_t count, const struct tool_symbol *more) {
    for (; more->name && count < SYMBOLS - 1; more++)
        symbols[count++] = *more;
    return count;
}

static void on_start(void) {
    const char *mode = tool_option("mode");
    dhat_mode = !mode || strcmp(mode, "heap") == 0 ? DHAT_HEAP
                : strcmp(mode, "copy") == 0        ? DHAT_COPY
                                                   : DHAT_AD_HOC;
    file_start();
    points_start();
    events_start();
    size_t count = add_symbols(replaced_start(symbols), replaced_copies);
    add_symbols(count, replaced_strings);
}

static void on_end(void) {
    points_end();
}

static void on_forking(void) {
    events_close_gate();
    file_forking();
}

static void on_fork_made(void) {
    events_open_gate();
    file_fork_made();
}

static void on_forked(void) {
    file_forked();
    events_forked();
}

const struct tool tool_dhat = {
    .name = "dhat",
    .thread_size = sizeof(struct dhat_thread),
    .memory_start = HEAP_NOTES,
    .memory_end = HEAP_COUNTERS + 2 * (HEAP_END - HEAP_START),
    .plain_hooks = true,
    .symbols = symbols,
    .exit_functions = allocators_exit_functions,
    .allocator_function = allocators_call,
    .allocator_modules = allocators_family_modules,
    .start = on_start,
    .end = on_end,
    .instruction = on_instruction,
    .block_end = on_block_end,
    .flushed = heap_code_flushed,
    .thread_started = on_thread_started,
    .thread_ended = on_thread_ended,
    .forking = on_forking,
    .fork_made = on_fork_made,
    .forked = on_forked,
    .before_system_call = before_system_call,
    .after_system_call = after_system_call,
    .request = on_request,
};
