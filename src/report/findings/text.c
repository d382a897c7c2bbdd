#include "report/findings/text.h"

#include <stdio.h>
#include <stdlib.h>

struct writing {
    struct text *text;
    const struct stack_text_options *options;
};

// Names of the target's own must not steer a terminal.
static void add_escaped(struct text *text, const char *line) {
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    if (!out)
        return;
    stack_text_escaped(out, line);
    if (fclose(out) == 0)
        text_string(text, bytes);
    free(bytes);
}

static void headline(void *context, const char *line) {
    struct writing *writing = context;
    add_escaped(writing->text, line);
    text_char(writing->text, '\n');
}

static void remark(void *context, const char *line) {
    struct writing *writing = context;
    text_char(writing->text, ' ');
    headline(context, line);
}

static void stack_line(void *context, const char *line) {
    text_format(context, "%s\n", line);
}

static void stack(void *context, const struct named_stack *stack) {
    struct writing *writing = context;
    for (size_t i = 0; i < stack->shown; i++) {
        const struct symbol_frame *frame = &stack->frames[i].symbol;
        stack_text_line(i == 0, stack->frames[i].address,
                        frame->name || frame->object ? frame : NULL, writing->options, stack_line,
                        writing->text);
    }
}

void finding_text(const struct named_finding *finding, const struct stack_text_options *options,
                  struct text *text) {
    struct writing writing = {text, options};
    finding_write(finding, options,
                  &(struct finding_writer){headline, stack, remark, &writing, headline});
}

void finding_place_text(const struct named_finding *finding,
                        const struct stack_text_options *options, struct text *text) {
    struct writing writing = {text, options};
    finding_write_place(finding, options,
                        &(struct finding_writer){headline, stack, remark, &writing, NULL});
}

void loss_text(const struct named_loss *loss, size_t index, size_t count, bool is_delta,
               const struct stack_text_options *options, struct text *text) {
    struct writing writing = {text, options};
    loss_write(loss, index, count, is_delta, options,
               &(struct finding_writer){headline, stack, remark, &writing, NULL});
}
