#include "report/findings/named_finding.h"

#include <stdlib.h>
#include <string.h>

static struct named_stack name_stack(const struct naming *naming, const uint64_t *pcs,
                                     size_t count) {
    struct stack stack = {.pid = naming->pid, .addresses = pcs, .count = count};
    return named_stack_make(naming->symbols, naming->cache, &stack, naming->options);
}

// The frame on the stack belongs to the function that holds inlined ones.
static bool name_outermost(const struct naming *naming, uint64_t pc, struct symbol_frame *frame) {
    struct symbol_frame frames[64];
    size_t count = symbols_resolve(naming->symbols, naming->pid, pc, false, frames, 64);
    if (count)
        *frame = frames[count - 1];
    return count > 0;
}

// The function that made a frame, with the line where it begins.
static void name_frame(const struct naming *naming, uint64_t pc, struct symbol_frame *frame) {
    if (name_outermost(naming, pc, frame) && frame->offset)
        name_outermost(naming, pc - frame->offset, frame);
}

// A stack allocation belongs to a function as a whole.
static struct named_stack name_function(const struct naming *naming, uint64_t pc) {
    struct symbol_frame frame;
    if (name_outermost(naming, pc, &frame))
        pc -= frame.offset;
    return name_stack(naming, &pc, 1);
}

// Callers are in the middle of a call.
static void name_variable(const struct naming *naming, struct named_finding *finding) {
    const struct finding_facts *facts = &finding->facts;
    if (facts->place != PLACE_STACK)
        finding->has_variable =
            symbols_global(naming->symbols, naming->pid, facts->address, &finding->variable);
    else if (facts->frame_pc)
        finding->has_variable =
            symbols_local(naming->symbols, naming->pid, facts->frame_pc - (facts->frame > 0),
                          facts->end, facts->address, &finding->variable);
}

static void name_place(const struct naming *naming, struct named_finding *finding) {
    const struct finding_facts *facts = &finding->facts;
    if (naming->options->variables &&
        (facts->place == PLACE_STACK || facts->place == PLACE_UNKNOWN ||
         facts->place == PLACE_ANONYMOUS || facts->place == PLACE_FILE))
        name_variable(naming, finding);
    switch (facts->place) {
    case PLACE_STACK:
        if (facts->frame >= 0 && facts->frame_pc)
            name_frame(naming, facts->frame_pc, &finding->frame);
        break;
    case PLACE_UNKNOWN:
    case PLACE_ANONYMOUS:
    case PLACE_FILE:
        finding->has_data =
            symbols_resolve_data(naming->symbols, naming->pid, facts->address, &finding->data);
        if (!finding->has_data)
            finding->section =
                symbols_section(naming->symbols, naming->pid, facts->address, &finding->object);
        if (finding->section && strcmp(finding->section, "Text") == 0)
            finding->code = name_stack(naming, &facts->address, 1);
        break;
    default:
        break;
    }
}

struct named_finding *named_finding_make(const struct naming *naming,
                                         const struct finding *finding) {
    struct named_finding *named = base_allocate(sizeof *named);
    *named = (struct named_finding){.references = 1, .facts = finding->facts};
    for (unsigned i = 0; i < FINDING_STACKS; i++) {
        const struct finding_stack *stack = &finding->stacks[i];
        if (i == STACK_OF_ORIGIN && finding->facts.origin == MADE_BY_STACK && stack->count)
            named->stacks[i] = name_function(naming, stack->pcs[0]);
        else
            named->stacks[i] = name_stack(naming, stack->pcs, stack->count);
    }
    for (unsigned i = 0; i < 2; i++)
        named->names[i] = base_copy(finding->names[i]);
    name_place(naming, named);
    return named;
}

struct named_finding *named_finding_share(struct named_finding *finding) {
    finding->references++;
    return finding;
}

void named_finding_drop(struct named_finding *finding) {
    if (--finding->references)
        return;
    for (unsigned i = 0; i < FINDING_STACKS; i++)
        named_stack_free(&finding->stacks[i]);
    named_stack_free(&finding->code);
    free(finding->names[0]);
    free(finding->names[1]);
    free(finding);
}

void named_loss_make(struct named_loss *loss, const struct naming *naming, const struct loss *facts,
                     const uint64_t *pcs, size_t count) {
    *loss = (struct named_loss){.facts = *facts, .stack = name_stack(naming, pcs, count)};
}

void named_loss_name_holder(struct named_loss *loss, const struct naming *naming) {
    if (loss->facts.holder == HELD_BY_DATA)
        symbols_resolve_data(naming->symbols, naming->pid, loss->facts.holder_address,
                             &loss->holder_data);
    if (loss->facts.holder == HELD_BY_STACK && loss->facts.holder_pc)
        name_outermost(naming, loss->facts.holder_pc, &loss->holder_frame);
}

void named_loss_free(struct named_loss *loss) {
    named_stack_free(&loss->stack);
}
