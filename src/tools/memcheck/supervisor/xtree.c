// --xtree-leak: the losses of the search at the end of a process, as a file.
// --xtree-memory: what each stack has allocated and freed, as a file.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/tool.h"
#include "tools/memcheck/supervisor/parts.h"

// What there is now, then how much more and how much less it is than in the search before.
enum { NOW = 9, EVENTS = 3 * NOW };

static const struct xtree_event events[EVENTS] = {
    {"RB", "Reachable Bytes"},
    {"PB", "Possibly lost Bytes"},
    {"IB", "Indirectly lost Bytes"},
    {"DB", "Definitely lost Bytes (direct plus indirect)"},
    {"DIB", "Definitely Indirectly lost Bytes (subset of DB)"},
    {"RBk", "reachable Blocks"},
    {"PBk", "Possibly lost Blocks"},
    {"IBk", "Indirectly lost Blocks"},
    {"DBk", "Definitely lost Blocks"},
    {"iRB", "increase Reachable Bytes"},
    {"iPB", "increase Possibly lost Bytes"},
    {"iIB", "increase Indirectly lost Bytes"},
    {"iDB", "increase Definitely lost Bytes"},
    {"iDIB", "increase Definitely Indirectly lost Bytes"},
    {"iRBk", "increase reachable Blocks"},
    {"iPBk", "increase Possibly lost Blocks"},
    {"iIBk", "increase Indirectly lost Blocks"},
    {"iDBk", "increase Definitely lost Blocks"},
    {"dRB", "decrease Reachable Bytes"},
    {"dPB", "decrease Possibly lost Bytes"},
    {"dIB", "decrease Indirectly lost Bytes"},
    {"dDB", "decrease Definitely lost Bytes"},
    {"dDIB", "decrease Definitely Indirectly lost Bytes"},
    {"dRBk", "decrease reachable Blocks"},
    {"dPBk", "decrease Possibly lost Blocks"},
    {"dIBk", "decrease Indirectly lost Blocks"},
    {"dDBk", "decrease Definitely lost Blocks"},
};

static void set(uint64_t values[EVENTS], unsigned event, uint64_t now, uint64_t before) {
    values[event] = now;
    values[NOW + event] = now > before ? now - before : 0;
    values[2 * NOW + event] = now < before ? before - now : 0;
}

static void add(struct xtree *tree, const struct named_loss *loss) {
    static const unsigned places[LEAK_KINDS] = {
        [LEAK_REACHABLE] = 0, [LEAK_POSSIBLE] = 1, [LEAK_INDIRECT] = 2, [LEAK_DEFINITE] = 3};
    const struct loss *facts = &loss->facts;
    uint64_t values[EVENTS] = {0};
    unsigned place = places[facts->kind];
    set(values, place, facts->bytes + facts->indirect_bytes,
        facts->old_bytes + facts->old_indirect_bytes);
    set(values, 5 + place, facts->blocks, facts->old_blocks);
    if (facts->kind == LEAK_DEFINITE)
        set(values, 4, facts->indirect_bytes, facts->old_indirect_bytes);
    xtree_add(tree, &loss->stack, values);
}

static void say(struct process_findings *process, char *line) {
    if (line)
        findings_say(process, line);
    free(line);
}

void leaks_write_xtree(struct process_findings *process) {
    char *command = xtree_file_command(process->run->request, process->pid);
    struct xtree tree = {.events = events,
                         .event_count = EVENTS,
                         .compress_strings = settings_of(process)->xtree_compress,
                         .command = command,
                         .pid = process->pid};
    struct text content = {0};
    for (size_t i = 0; i < process->search.count; i++)
        if (!process->search.losses[i].facts.is_quiet) // else it is suppressed
            add(&tree, &process->search.losses[i]);
    xtree_write(&tree, &content);
    say(process, xtree_file_write(process->run->request, process->pid, "leak",
                                  settings_of(process)->xtree_leak, &content));
    xtree_free(&tree);
    text_free(&content);
    free(command);
}

// ---- the heap by place -------------------------------------------------------------------------

// The process's word, read after its end.
struct memory {
    uint32_t count, pc_count;
    bool is_full; // of stacks, some of which have found no place
    struct ledger_site *sites;
    uint64_t *pcs;
    struct named_stack *stacks;
};

static bool read_part(const struct process_findings *process, size_t offset, void *to,
                      size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(process->ledger, (char *)to + done, size - done,
                            (off_t)(offsetof(struct ledger_and_sites, sites) + offset + done));
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static bool memory_read(const struct process_findings *process, struct memory *memory) {
    uint32_t taken[2];
    if (!read_part(process, 0, taken, sizeof taken))
        return false;
    memory->is_full = taken[0] >= LEDGER_SITES || taken[1] >= LEDGER_SITE_PCS;
    memory->count = taken[0] < LEDGER_SITES ? taken[0] : LEDGER_SITES;
    memory->pc_count = taken[1] < LEDGER_SITE_PCS ? taken[1] : LEDGER_SITE_PCS;
    memory->sites = base_allocate((memory->count + 1) * sizeof *memory->sites);
    memory->pcs = base_allocate((memory->pc_count + 1) * sizeof *memory->pcs);
    memory->stacks = base_allocate((memory->count + 1) * sizeof *memory->stacks);
    memset(memory->stacks, 0, (memory->count + 1) * sizeof *memory->stacks);
    return read_part(process, offsetof(struct ledger_sites, sites), memory->sites,
                     memory->count * sizeof *memory->sites) &&
           read_part(process, offsetof(struct ledger_sites, pcs), memory->pcs,
                     memory->pc_count * sizeof *memory->pcs);
}

static void memory_free(struct memory *memory) {
    for (uint32_t i = 0; i < memory->count && memory->stacks; i++)
        named_stack_free(&memory->stacks[i]);
    free(memory->sites);
    free(memory->pcs);
    free(memory->stacks);
}

// The function that allocates or frees is left out, unless there is nothing else.
static void drop_innermost(struct named_stack *stack) {
    size_t first = 0;
    while (first < stack->shown && stack->frames[first].address == stack->frames[0].address)
        first++;
    if (first == stack->shown)
        return;
    memmove(stack->frames, stack->frames + first, (stack->count - first) * sizeof *stack->frames);
    stack->count -= first;
    stack->shown -= first;
}

static struct named_stack memory_stack(struct process_findings *process,
                                       const struct memory *memory,
                                       const struct ledger_site *site) {
    struct named_stack named = {0};
    if (site->pc_count <= memory->pc_count && site->first_pc <= memory->pc_count - site->pc_count) {
        struct stack stack = {.pid = process->pid,
                              .addresses = memory->pcs + site->first_pc,
                              .count = site->pc_count};
        named = named_stack_make(process->run->symbols, process->cache, &stack,
                                 &process->run->request->stacks);
    }
    if (named.shown) {
        drop_innermost(&named);
        return named;
    }
    named.frames = base_reallocate(named.frames, sizeof *named.frames); // of an unknown place
    named.frames[0] = (struct named_frame){0};
    named.count = named.shown = 1;
    return named;
}

static bool has_any(const uint64_t *values, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (values[i])
            return true;
    return false;
}

void memory_write_xtree(struct process_findings *process) {
    const char *pattern = settings_of(process)->xtree_memory;
    struct memory memory = {0};
    if (!pattern || !memory_read(process, &memory)) {
        memory_free(&memory);
        return;
    }
    char *command = xtree_file_command(process->run->request, process->pid);
    bool is_full = settings_of(process)->xtree_memory_full;
    struct xtree tree = {.events = xtree_memory_events,
                         .event_count = is_full ? XTREE_MEMORY_EVENTS : XTREE_LIVE_EVENTS,
                         .compress_strings = settings_of(process)->xtree_compress,
                         .command = command,
                         .pid = process->pid};
    for (uint32_t i = 0; i < memory.count; i++) {
        if (!has_any(memory.sites[i].values, tree.event_count))
            continue;
        memory.stacks[i] = memory_stack(process, &memory, &memory.sites[i]);
        xtree_add(&tree, &memory.stacks[i], memory.sites[i].values);
    }
    if (memory.is_full)
        findings_say(process, "There were more different stacks than --xtree-memory has room for: "
                              "what the rest did stands under ???");
    say(process, xtree_file_write_memory(&tree, process->run->request, pattern));
    xtree_free(&tree);
    memory_free(&memory);
    free(command);
}
