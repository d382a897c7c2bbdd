// The search for leaks in a recorded process: the blocks that are alive, as the recorder told them,
// and who points to them (leak_memory.h, leak_graph.h). Shown as memcheck shows it.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "profile/heap/leak_graph.h"
#include "supervisor/tool.h"
#include "tools/shared/supervisor/recorded/recorded.h"

// Blocks of one kind that were allocated in one place.
struct record {
    uint32_t stack;
    uint8_t kind;
    uint64_t blocks, bytes, indirect;
};

static struct symbols *symbols_of(const struct recorded_process *process) {
    return process->recorded->run->symbols;
}

static const struct recorded_leaks *settings_of(const struct recorded_process *process) {
    return &process->recorded->leaks;
}

static const struct stack_text_options *options_of(const struct recorded_process *process) {
    return &process->recorded->names.text;
}

// ---- holders -----------------------------------------------------------------------------------

#define STACK_MOST (8ull << 20) // how far from its pointer a stack may reach

static void note_stacks(struct recorded_process *process, const struct freeze *freeze) {
    process->stack_pointer_count = 0;
    for (size_t i = 0; i < freeze->count; i++)
        if (freeze->threads[i].stopped)
            *vector_push(process->stack_pointers, process->stack_pointer_count) =
                (struct recorded_stack_pointer){freeze->threads[i].stack_pointer, (int)i + 1};
}

// The variable that a root was last found in: neighbours often follow each other.
struct variable {
    uint64_t start, size;
};

// Roots in one variable, or on one stack, are one: where that begins.
static uint64_t common_root(const struct recorded_process *process, uint64_t root,
                            struct variable *latest) {
    struct symbol_data data = {0};
    if (!root || root - latest->start < latest->size)
        return root ? latest->start : 0;
    if (symbols_resolve_data(symbols_of(process), process->pid, root, &data) && data.name) {
        *latest = (struct variable){root - data.offset, data.size};
        return latest->start;
    }
    for (size_t i = 0; i < process->stack_pointer_count; i++)
        if (root - process->stack_pointers[i].pointer < STACK_MOST)
            return process->stack_pointers[i].pointer;
    return root;
}

// The root that holds most bytes of each stack, if one holds more than half of them: votes by
// majority, in one pass.
static void note_holders(struct recorded_process *process, const struct leak_graph *graph) {
    size_t count;
    const struct leak_graph_block *blocks = leak_graph_blocks(graph, &count);
    struct variable latest = {0};
    free(process->holders);
    process->holder_count = process->stacks->count;
    process->holders = calloc(process->holder_count + 1, sizeof *process->holders);
    if (!process->holders)
        abort();
    for (size_t i = 0; i < count; i++) {
        const struct leak_graph_block *block = &blocks[i];
        if (block->stack >= process->holder_count)
            continue;
        struct recorded_holder *holder = &process->holders[block->stack];
        bool is_held = block->kind == LEAK_REACHABLE;
        holder->held += is_held ? block->size : 0;
        holder->lost += !is_held && block->kind != LEAK_POSSIBLE ? block->size : 0;
        if (!is_held)
            continue;
        uint64_t common = common_root(process, block->root, &latest);
        if (holder->root == common)
            holder->votes += block->size;
        else if (holder->votes >= block->size)
            holder->votes -= block->size;
        else
            *holder = (struct recorded_holder){.root = common,
                                               .steps = block->steps,
                                               .votes = block->size - holder->votes,
                                               .held = holder->held,
                                               .lost = holder->lost};
    }
}

static void find_holder(struct recorded_process *process, const struct recorded_holder *holder,
                        const struct naming *naming, struct named_loss *loss) {
    struct loss *facts = &loss->facts;
    if (!holder->root)
        return;
    facts->holder_address = holder->root;
    facts->holder_steps = holder->steps;
    facts->holder = HELD_BY_DATA;
    named_loss_name_holder(loss, naming);
    if (loss->holder_data.name)
        return;
    facts->holder = HELD_BY_MAPPING;
    for (size_t i = 0; i < process->stack_pointer_count; i++) {
        const struct recorded_stack_pointer *stack = &process->stack_pointers[i];
        if (holder->root == stack->pointer) {
            facts->holder = HELD_BY_STACK;
            facts->holder_thread = stack->thread;
        }
    }
}

static struct naming naming_of(struct recorded_process *process) {
    return (struct naming){symbols_of(process), named_cache_new(), process->pid,
                           options_of(process)};
}

char *recorded_holder_text(struct recorded_process *process, uint32_t stack) {
    struct text text = {0};
    if (stack < process->holder_count &&
        process->holders[stack].lost > process->holders[stack].held) {
        text_string(&text, HEAP_HELD_BY_NOBODY);
    } else if (stack < process->holder_count) {
        struct naming naming = naming_of(process);
        struct named_loss loss = {0};
        find_holder(process, &process->holders[stack], &naming, &loss);
        loss_holder_text(&loss, naming.options, &text);
        named_cache_free(naming.cache);
    }
    return text_take(&text);
}

// ---- searching ---------------------------------------------------------------------------------

struct list {
    struct leak_graph_block *at;
    size_t count;
};

static void take_block(void *context, uint64_t address, const struct heap_block *block) {
    struct list *list = context;
    *vector_push(list->at, list->count) =
        (struct leak_graph_block){.start = address, .size = block->size, .stack = block->stack};
}

static void each_piece(const void *context, leak_piece *piece, void *piece_context) {
    heap_source_memory(context, piece, piece_context);
}

// While the process stands still. NULL: its memory cannot be read.
static struct leak_graph *search(struct recorded_process *process, const struct freeze *freeze) {
    struct list list = {0};
    struct leak_memory memory;
    heap_source_drain(process->source, true);
    heap_source_blocks(process->source, take_block, &list);
    struct leak_graph *graph =
        leak_graph_new(list.at, list.count, settings_of(process)->heuristics,
                       &(struct leak_graph_memory){&memory, leak_memory_word, leak_memory_is_code});
    size_t count;
    const struct leak_graph_block *blocks = leak_graph_blocks(graph, &count);
    struct leak_heap heap = {process->source, heap_source_is_libc(process->source), each_piece,
                             NULL};
    bool is_open = leak_memory_open(&memory, process->pid, freeze, &heap, blocks, count);
    if (is_open)
        leak_memory_scan(&memory, freeze, graph);
    leak_memory_close(&memory);
    if (is_open)
        return graph;
    leak_graph_free(graph);
    return NULL;
}

// ---- records -----------------------------------------------------------------------------------

struct sorter {
    const struct stacks *stacks;
    size_t callers;
};

// Stacks that are shown alike are one.
static int compare_stacks(const struct sorter *sorter, uint32_t a, uint32_t b) {
    if (a == b)
        return 0;
    const struct stacks_entry *one = stacks_get(sorter->stacks, a);
    const struct stacks_entry *other = stacks_get(sorter->stacks, b);
    size_t one_count = one->count < sorter->callers ? one->count : sorter->callers;
    size_t other_count = other->count < sorter->callers ? other->count : sorter->callers;
    if (one_count != other_count)
        return one_count < other_count ? -1 : 1;
    return one_count ? memcmp(one->pcs, other->pcs, one_count * sizeof *one->pcs) : 0;
}

static int by_place(const void *a, const void *b, void *sorter) {
    const struct record *one = a, *other = b;
    if (one->kind != other->kind)
        return one->kind < other->kind ? -1 : 1;
    return compare_stacks(sorter, one->stack, other->stack);
}

// The worst come last, where the eye is.
static int by_bytes(const void *a, const void *b, void *sorter) {
    const struct record *one = a, *other = b;
    uint64_t bytes = one->bytes + one->indirect, more = other->bytes + other->indirect;
    if (bytes != more)
        return bytes < more ? -1 : 1;
    return by_place(a, b, sorter);
}

static struct record *make_records(const struct leak_graph *graph, struct sorter *sorter,
                                   size_t *count) {
    size_t block_count, kept = 0;
    const struct leak_graph_block *blocks = leak_graph_blocks(graph, &block_count);
    struct record *records = base_allocate((block_count + 1) * sizeof *records);
    for (size_t i = 0; i < block_count; i++)
        records[i] = (struct record){.stack = blocks[i].stack,
                                     .kind = blocks[i].kind,
                                     .blocks = 1,
                                     .bytes = blocks[i].size,
                                     .indirect = blocks[i].indirect};
    qsort_r(records, block_count, sizeof *records, by_place, sorter);
    for (size_t i = 0; i < block_count; i++) {
        if (kept && by_place(&records[kept - 1], &records[i], sorter) == 0) {
            records[kept - 1].blocks += records[i].blocks;
            records[kept - 1].bytes += records[i].bytes;
            records[kept - 1].indirect += records[i].indirect;
        } else {
            records[kept++] = records[i];
        }
    }
    qsort_r(records, kept, sizeof *records, by_bytes, sorter);
    *count = kept;
    return records;
}

// ---- showing -----------------------------------------------------------------------------------

// As a result for other programs. Losses count as memcheck's do by default.
static void collect(struct recorded_process *process, const struct named_loss *loss, size_t index,
                    size_t count) {
    bool fails = loss->facts.kind == LEAK_DEFINITE || loss->facts.kind == LEAK_POSSIBLE;
    struct results *results = outputs_results(process->recorded->run->request);
    const struct result *result = NULL;
    if (results)
        result =
            results_add_loss(results, loss, index, count, options_of(process), process->pid, fails);
    process->recorded->leaks_failed |= fails && !(result && result->known);
}

// ---- suppressions ------------------------------------------------------------------------------

// Stacks here begin with the caller of the function that allocated; those of memcheck, for which
// suppressions are written, with that function, which may have been any of these.
static struct suppression *suppressed_by(struct suppressions *all, const struct named_loss *loss) {
    static const struct symbol_frame callees[] = {
        {.name = "malloc", .linkage = "malloc"},
        {.name = "calloc", .linkage = "calloc"},
        {.name = "realloc", .linkage = "realloc"},
        {.name = "memalign", .linkage = "memalign"},
        {.name = "posix_memalign", .linkage = "posix_memalign"},
        {.name = "aligned_alloc", .linkage = "aligned_alloc"},
        {.name = "valloc", .linkage = "valloc"},
        {.name = "operator new(unsigned long)", .linkage = "_Znwm"},
        {.name = "operator new[](unsigned long)", .linkage = "_Znam"},
        {.name = "operator new(unsigned long, std::nothrow_t const&)",
         .linkage = "_ZnwmRKSt9nothrow_t"},
        {.name = "operator new[](unsigned long, std::nothrow_t const&)",
         .linkage = "_ZnamRKSt9nothrow_t"},
        {.name = "operator new(unsigned long, std::align_val_t)",
         .linkage = "_ZnwmSt11align_val_t"},
        {.name = "operator new[](unsigned long, std::align_val_t)",
         .linkage = "_ZnamSt11align_val_t"},
    };
    struct suppression *by = loss_suppressed_by(loss, &loss->stack, all);
    if (by)
        return by;
    struct named_stack whole = {.count = loss->stack.count + 1, .shown = loss->stack.shown + 1};
    whole.frames = base_allocate(whole.count * sizeof *whole.frames);
    if (loss->stack.count)
        memcpy(whole.frames + 1, loss->stack.frames, loss->stack.count * sizeof *whole.frames);
    for (size_t i = 0; i < sizeof callees / sizeof *callees && !by; i++) {
        whole.frames[0] = (struct named_frame){.symbol = callees[i]};
        by = loss_suppressed_by(loss, &whole, all);
    }
    free(whole.frames);
    return by;
}

// A search counts by itself.
static void forget_used(struct suppressions *all) {
    struct suppression *next = all ? suppressions_next_used(all, NULL) : NULL;
    while (next) {
        struct suppression *used = next;
        next = suppressions_next_used(all, used);
        used->used = used->leaked_bytes = used->leaked_blocks = 0;
    }
}

static void count_used(struct suppression *by, const struct record *record,
                       struct leak_sums *sums) {
    by->used++;
    by->leaked_bytes += record->bytes + record->indirect;
    by->leaked_blocks += record->blocks;
    sums->bytes[LEAK_KINDS] += record->bytes;
    sums->blocks[LEAK_KINDS] += record->blocks;
    sums->bytes[record->kind] -= record->bytes;
    sums->blocks[record->kind] -= record->blocks;
}

static void show_used(const struct recorded_process *process) {
    struct suppressions *all = settings_of(process)->suppressions;
    struct suppression *used = all ? suppressions_next_used(all, NULL) : NULL;
    if (!used)
        return;
    for (; used; used = suppressions_next_used(all, used)) {
        struct text line = {0};
        suppressions_used_text(used, &line);
        log_print(process->log, process->pid, LOG_USER, line.bytes);
        text_free(&line);
    }
    log_print(process->log, process->pid, LOG_USER, "");
}

// ---- one loss, and all of them -----------------------------------------------------------------

static void make_loss(struct recorded_process *process, const struct record *record,
                      const struct naming *naming, struct named_loss *loss) {
    const struct stacks_entry *stack = stacks_get(process->stacks, record->stack);
    struct loss facts = {.kind = record->kind,
                         .blocks = record->blocks,
                         .bytes = record->bytes,
                         .indirect_bytes = record->indirect};
    uint64_t *pcs = base_allocate((stack->count + 1) * sizeof *pcs);
    memcpy(pcs, stack->pcs, stack->count * sizeof *pcs);
    // The first one is taken for the place itself, and is a return address as the others are.
    if (stack->count)
        pcs[0]--;
    named_loss_make(loss, naming, &facts, pcs, stack->count);
    loss->is_callers = true;
    free(pcs);
}

static void show_loss(struct recorded_process *process, const struct record *record,
                      struct named_loss *loss, const struct naming *naming, size_t index,
                      size_t count) {
    struct text text = {0};
    if (record->kind == LEAK_REACHABLE && record->stack < process->holder_count)
        find_holder(process, &process->holders[record->stack], naming, loss);
    loss_text(loss, index, count, false, naming->options, &text);
    if (log_shows(process->log, 0)) {
        log_print(process->log, process->pid, LOG_USER, text.bytes);
        log_print(process->log, process->pid, LOG_USER, "");
    }
    text_free(&text);
    if (settings_of(process)->generate) {
        loss_suppression(loss, &text);
        log_raw(process->log, process->pid, text.bytes);
    }
    text_free(&text);
}

// What hides the record; NULL: nothing, and it is shown if that is wanted.
static struct suppression *take_record(struct recorded_process *process,
                                       const struct record *record, const struct naming *naming,
                                       size_t index, size_t count, bool is_shown, bool is_last) {
    struct named_loss loss;
    make_loss(process, record, naming, &loss);
    struct suppression *by = settings_of(process)->suppressions
                                 ? suppressed_by(settings_of(process)->suppressions, &loss)
                                 : NULL;
    if (!by && is_shown) {
        show_loss(process, record, &loss, naming, index, count);
        if (is_last)
            collect(process, &loss, index, count);
    }
    named_loss_free(&loss);
    return by;
}

// Who asks while the program runs wants to see them all, unless the options say otherwise.
static void show(struct recorded_process *process, const struct leak_graph *graph, bool is_last,
                 struct text *text) {
    const struct recorded_leaks *settings = settings_of(process);
    size_t count;
    struct leak_sums sums = {0};
    bool full = settings->check != LEAK_CHECK_SUMMARY && (log_shows(process->log, 0) || is_last);
    struct sorter sorter = {process->stacks, options_of(process)->callers};
    const struct leak_graph_block *blocks = leak_graph_blocks(graph, &count);
    leak_sums_add(&sums, blocks, count);
    fleet_lost(process->recorded->run->request->fleet, process->pid,
               sums.bytes[LEAK_DEFINITE] + sums.bytes[LEAK_INDIRECT],
               sums.blocks[LEAK_DEFINITE] + sums.blocks[LEAK_INDIRECT]);
    forget_used(settings->suppressions);
    if (full || settings->suppressions) {
        struct record *records = make_records(graph, &sorter, &count);
        struct naming naming = naming_of(process);
        for (size_t i = 0; i < count; i++) {
            bool is_shown = full && settings->show_kinds & 1u << records[i].kind;
            if (!is_shown && !settings->suppressions)
                continue;
            struct suppression *by =
                take_record(process, &records[i], &naming, i + 1, count, is_shown, is_last);
            if (by)
                count_used(by, &records[i], &sums);
        }
        named_cache_free(naming.cache);
        free(records);
    }
    leak_graph_blocks(graph, &count);
    if (count)
        leak_sums_text(&sums, NULL, text);
    else
        text_string(text, "All heap blocks were freed -- no leaks are possible");
    if (!log_shows(process->log, 0))
        return;
    log_print(process->log, process->pid, LOG_USER, text->bytes);
    if (count && settings->check == LEAK_CHECK_SUMMARY)
        log_print(process->log, process->pid, LOG_USER,
                  "Rerun with --leak-check=full to see details of leaked memory");
    log_print(process->log, process->pid, LOG_USER, "");
    if (settings->list)
        show_used(process);
}

bool recorded_search_leaks(struct recorded_process *process, enum recorded_search why,
                           struct text *sums) {
    struct freeze freeze;
    struct leak_graph *graph = NULL;
    if (!process->recorded->recorder) {
        text_string(sums, "the program runs translated; leaks are searched for natively only");
        return false;
    }
    bool is_frozen = freeze_begin(&freeze, process->pid);
    int error = errno;
    if (is_frozen) {
        graph = search(process, &freeze);
        note_stacks(process, &freeze);
        freeze_end(&freeze);
    }
    if (why == SEARCH_ENDING)
        heap_source_answer(process->source);
    if (!is_frozen) {
        text_format(sums, "process %d cannot be searched for leaks: it cannot be stopped (%s)",
                    process->pid, strerror(error));
        return false;
    }
    if (!graph) {
        text_format(sums, "process %d cannot be searched for leaks: its memory cannot be read",
                    process->pid);
        return false;
    }
    leak_graph_classify(graph);
    note_holders(process, graph);
    show(process, graph, why != SEARCH_ASKED, sums);
    leak_graph_free(graph);
    return true;
}

// ---- when --------------------------------------------------------------------------------------

static void search_and_say(struct recorded_process *process, enum recorded_search why) {
    struct text sums = {0};
    if (!recorded_search_leaks(process, why, &sums))
        log_print(process->log, process->pid, LOG_USER, sums.bytes);
    text_free(&sums);
}

void recorded_ending(struct recorded_process *process) {
    if (settings_of(process)->check == LEAK_CHECK_NO) {
        heap_source_answer(process->source);
        return;
    }
    heap_source_halt(process->source);
    search_and_say(process, SEARCH_ENDING);
    heap_source_continue(process->source);
}

// Whether the process has a handler for SIGINT, or ignores it: then it may end by itself, and is
// searched at that moment.
static bool handles_interrupt(int pid) {
    char path[64];
    char line[256];
    unsigned long long caught, handled = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "SigCgt: %llx", &caught) == 1 ||
            sscanf(line, "SigIgn: %llx", &caught) == 1)
            handled |= caught;
    if (file)
        fclose(file);
    return handled & 1ull << (SIGINT - 1);
}

void recorded_stopping(struct tool_run *run) {
    const struct recorded *recorded = run->state;
    for (size_t i = 0; i < recorded->process_count; i++)
        recorded_take_before(recorded->processes[i], true);
    for (size_t i = 0; recorded->leaks.check != LEAK_CHECK_NO && i < recorded->process_count; i++)
        if (run->request->attach_pid || !handles_interrupt(recorded->processes[i]->pid))
            search_and_say(recorded->processes[i], SEARCH_STOPPING);
}
