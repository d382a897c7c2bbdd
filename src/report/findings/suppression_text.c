// Suppressions for what was found: the one that applies, and one that would.
#include "report/findings/named_finding.h"
#include "report/findings/suppressions.h"

static void add_kind(const struct named_finding *finding, struct text *text) {
    bool is_sized;
    text_string(text, finding_kind_suppression(finding->facts.kind, &is_sized));
    if (is_sized)
        text_format(text, "%lu", finding->facts.size);
}

// The line between kind and stack; false: there is none.
static bool add_parameter(const struct named_finding *finding, struct text *text) {
    if (finding->facts.kind == FINDING_PARAMETER)
        text_string(text, finding->names[0]);
    else if (finding->facts.kind == FINDING_FISHY)
        text_format(text, "%s(%s)", finding->names[0], finding->names[1]);
    else
        return false;
    return true;
}

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

static void begin_suppression(struct text *text, const char *tool) {
    text_format(text, "{\n   <insert_a_suppression_name_here>\n   %s:", tool);
}

void finding_suppression(const struct named_finding *finding, struct text *text) {
    struct text parameter = {0};
    begin_suppression(text, finding_kind_is_core(finding->facts.kind)            ? "CoreError"
                            : finding_kind_is_about_threads(finding->facts.kind) ? "Helgrind"
                                                                                 : "Memcheck");
    add_kind(finding, text);
    text_char(text, '\n');
    if (add_parameter(finding, &parameter)) {
        text_string(text, "   ");
        add_pattern(text, parameter.bytes);
        text_char(text, '\n');
    }
    add_locations(text, &finding->stacks[STACK_OF_FINDING]);
    text_string(text, "}\n");
    text_free(&parameter);
}

void loss_suppression(const struct named_loss *loss, struct text *text) {
    begin_suppression(text, "Memcheck");
    text_format(text, "Leak\n   match-leak-kinds: %s\n", leak_kind_name(loss->facts.kind));
    if (loss->is_callers)
        text_string(text, "   ...\n");
    add_locations(text, &loss->stack);
    text_string(text, "}\n");
}

// ---- matching ----------------------------------------------------------------------------------

struct suppression *finding_suppressed_by(const struct named_finding *finding,
                                          struct suppressions *suppressions) {
    struct text kind = {0};
    struct text parameter = {0};
    add_kind(finding, &kind);
    bool has_parameter = add_parameter(finding, &parameter);
    struct suppression_subject subject = {.kind = kind.bytes,
                                          .parameter = has_parameter ? parameter.bytes : NULL,
                                          .stack = &finding->stacks[STACK_OF_FINDING]};
    struct suppression *by = suppressions_match(suppressions, &subject);
    text_free(&kind);
    text_free(&parameter);
    return by;
}

struct suppression *loss_suppressed_by(const struct named_loss *loss,
                                       const struct named_stack *stack,
                                       struct suppressions *suppressions) {
    struct suppression_subject subject = {
        .kind = "Leak", .leak_kind = 1u << loss->facts.kind, .stack = stack};
    return suppressions_match(suppressions, &subject);
}
