#include "report/findings/finding.h"

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
static void name_variable(const struct naming *naming, struct finding *finding) {
    const struct wire_finding *facts = finding->facts;
    if (facts->place != PLACE_STACK)
        finding->has_variable =
            symbols_global(naming->symbols, naming->pid, facts->address, &finding->variable);
    else if (facts->frame_pc)
        finding->has_variable =
            symbols_local(naming->symbols, naming->pid, facts->frame_pc - (facts->frame > 0),
                          facts->end, facts->address, &finding->variable);
}

static void name_place(const struct naming *naming, struct finding *finding) {
    const struct wire_finding *facts = finding->facts;
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

struct finding *finding_make(const struct naming *naming, const struct wire_finding *message,
                             size_t size) {
    struct finding *finding = base_allocate(sizeof *finding);
    finding->references = 1;
    finding->facts = base_allocate(size);
    memcpy(finding->facts, message, size);
    const uint64_t *pcs = finding->facts->pcs;
    for (unsigned i = 0; i < FINDING_STACKS; i++) {
        if (i == STACK_OF_ORIGIN && message->origin == MADE_BY_STACK && message->pc_counts[i])
            finding->stacks[i] = name_function(naming, pcs[0]);
        else
            finding->stacks[i] = name_stack(naming, pcs, message->pc_counts[i]);
        pcs += message->pc_counts[i];
    }
    finding->names[0] = (const char *)pcs;
    finding->names[1] = finding->names[0] + strlen(finding->names[0]) + 1;
    name_place(naming, finding);
    return finding;
}

struct finding *finding_share(struct finding *finding) {
    finding->references++;
    return finding;
}

void finding_drop(struct finding *finding) {
    if (--finding->references)
        return;
    for (unsigned i = 0; i < FINDING_STACKS; i++)
        named_stack_free(&finding->stacks[i]);
    named_stack_free(&finding->code);
    free(finding->facts);
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

// ---- words -------------------------------------------------------------------------------------

void finding_suppression_kind(const struct finding *finding, struct text *text) {
    static const char *const words[FINDING_KINDS] = {
        [FINDING_CONDITION] = "Cond",  [FINDING_JUMP] = "Jump",
        [FINDING_PARAMETER] = "Param", [FINDING_CLIENT] = "User",
        [FINDING_FREE] = "Free",       [FINDING_MISMATCHED_FREE] = "Free",
        [FINDING_OVERLAP] = "Overlap", [FINDING_FISHY] = "FishyValue",
        [FINDING_POOL] = "Mempool",    [FINDING_CORE] = "CoreMem",
    };
    unsigned kind = finding->facts->kind;
    if (kind == FINDING_VALUE)
        text_format(text, "Value%lu", finding->facts->size);
    else if (kind == FINDING_READ || kind == FINDING_WRITE)
        text_format(text, "Addr%lu", finding->facts->size);
    else
        text_string(text, words[kind]);
}

const char *finding_xml_kind(const struct finding *finding) {
    static const char *const words[FINDING_KINDS] = {
        [FINDING_READ] = "InvalidRead",
        [FINDING_WRITE] = "InvalidWrite",
        [FINDING_CONDITION] = "UninitCondition",
        [FINDING_VALUE] = "UninitValue",
        [FINDING_JUMP] = "InvalidJump",
        [FINDING_PARAMETER] = "SyscallParam",
        [FINDING_CLIENT] = "ClientCheck",
        [FINDING_FREE] = "InvalidFree",
        [FINDING_MISMATCHED_FREE] = "MismatchedFree",
        [FINDING_OVERLAP] = "Overlap",
        [FINDING_FISHY] = "FishyValue",
        [FINDING_POOL] = "InvalidMemPool",
        [FINDING_CORE] = "CoreMemError",
    };
    return words[finding->facts->kind];
}

bool finding_parameter(const struct finding *finding, struct text *text) {
    if (finding->facts->kind == FINDING_PARAMETER)
        text_string(text, finding->names[0]);
    else if (finding->facts->kind == FINDING_FISHY)
        text_format(text, "%s(%s)", finding->names[0], finding->names[1]);
    else
        return false;
    return true;
}

// ---- generated suppressions --------------------------------------------------------------------

// What a file could not hold, or a pattern would take for something else, is any character.
static void add_pattern(struct text *text, const char *name) {
    for (; *name; name++)
        text_char(text, (unsigned char)*name < 0x20 || *name == 0x7f ? '?' : *name);
}

static void add_locations(struct text *text, const struct named_stack *stack) {
    for (size_t i = 0; i < stack->shown; i++) {
        const struct symbol_frame *frame = &stack->frames[i].symbol;
        const char *name = frame->inlined || !frame->linkage ? frame->name : frame->linkage;
        if (stack_text_is_below_main(frame))
            name = "(below main)";
        text_string(text, name ? "   fun:" : "   obj:");
        add_pattern(text, name ? name : frame->object ? frame->object : "*");
        text_char(text, '\n');
    }
}

static void begin_suppression(struct text *text) {
    text_string(text, "{\n   <insert_a_suppression_name_here>\n   Memcheck:");
}

void finding_suppression(const struct finding *finding, struct text *text) {
    struct text parameter = {0};
    begin_suppression(text);
    finding_suppression_kind(finding, text);
    text_char(text, '\n');
    if (finding_parameter(finding, &parameter)) {
        text_string(text, "   ");
        add_pattern(text, parameter.bytes);
        text_char(text, '\n');
    }
    add_locations(text, &finding->stacks[STACK_OF_FINDING]);
    text_string(text, "}\n");
    text_free(&parameter);
}

void loss_suppression(const struct named_loss *loss, struct text *text) {
    begin_suppression(text);
    text_format(text, "Leak\n   match-leak-kinds: %s\n", leak_kind_name(loss->facts.kind));
    if (loss->is_callers)
        text_string(text, "   ...\n");
    add_locations(text, &loss->stack);
    text_string(text, "}\n");
}
