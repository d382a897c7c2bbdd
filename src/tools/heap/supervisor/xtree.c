// --xtree-memory=allocs of massif: what is alive when a process ends, by the stack that allocated
// it.
#include <stdlib.h>
#include <string.h>

#include "supervisor/tool.h"
#include "tools/heap/supervisor/massif.h"

struct live {
    uint64_t (*values)[XTREE_LIVE_EVENTS]; // by stack
    size_t count;
};

static void add_block(void *context, uint64_t address, const struct heap_block *block) {
    struct live *live = context;
    live->values = base_reach(live->values, &live->count, block->stack, sizeof *live->values);
    live->values[block->stack][0] += block->size;
    live->values[block->stack][1]++;
}

// Without alloc functions and what is below main; a frame without a name if nothing is left.
static struct named_stack name(struct heap_names *names, const struct stacks_entry *stack) {
    size_t first;
    size_t count = heap_names_trim(names, stack, &first), room = 1;
    for (size_t i = 0; i < count; i++)
        room += heap_names_place(names, stack->pcs[first + i])->count;
    struct named_stack named = {.frames = base_allocate(room * sizeof *named.frames)};
    for (size_t i = 0; i < count; i++) {
        const struct heap_place *place = heap_names_place(names, stack->pcs[first + i]);
        for (size_t j = 0; j < place->count; j++)
            named.frames[named.count++] =
                (struct named_frame){.address = place->address, .symbol = place->frames[j]};
    }
    if (!named.count)
        named.frames[named.count++] = (struct named_frame){0};
    named.shown = named.count;
    return named;
}

void massif_write_xtree(struct recorded_process *process) {
    const struct massif_state *state = (const struct massif_state *)process->recorded;
    const struct tool_run *run = process->recorded->run;
    const char *pattern = state->xtree_memory;
    if (!pattern)
        return;
    // As deep as was recorded, whatever --depth says of snapshots: so has it Valgrind.
    struct heap_names_options options = process->recorded->names;
    options.depth = HEAP_FRAMES_MAX;
    struct heap_names *names = heap_names_new(run->symbols, process->pid, &options);
    struct live live = {0};
    heap_source_blocks(process->source, add_block, &live);
    char *command = xtree_file_command(run->request, process->pid);
    struct xtree tree = {.events = xtree_memory_events,
                         .event_count = XTREE_LIVE_EVENTS,
                         .compress_strings = state->xtree_compress,
                         .command = command,
                         .pid = process->pid};
    struct named_stack *stacks = base_allocate((live.count + 1) * sizeof *stacks);
    memset(stacks, 0, (live.count + 1) * sizeof *stacks);
    for (size_t i = 0; i < live.count; i++) {
        const struct stacks_entry *stack = stacks_get(process->stacks, (uint32_t)i);
        if (!live.values[i][1] || heap_names_ignored(names, stack))
            continue;
        stacks[i] = name(names, stack);
        xtree_add(&tree, &stacks[i], live.values[i]);
    }
    char *said = xtree_file_write_memory(&tree, run->request, pattern);
    if (said)
        log_print(process->log, process->pid, LOG_USER, said);
    free(said);
    xtree_free(&tree);
    for (size_t i = 0; i < live.count; i++)
        named_stack_free(&stacks[i]);
    free(stacks);
    free(live.values);
    heap_names_free(names);
    free(command);
}
