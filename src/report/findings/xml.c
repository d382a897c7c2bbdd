#include "report/findings/xml.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct writing {
    struct text *text;
    const struct named_loss *loss; // NULL: a finding
};

// Control characters and what is not UTF-8 cannot stand in XML at all.
void xml_escaped(struct text *text, const char *string) {
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    if (!out)
        return;
    stack_text_escaped(out, string);
    if (fclose(out) == 0) {
        for (const char *at = bytes; *at; at++) {
            if (*at == '&')
                text_string(text, "&amp;");
            else if (*at == '<')
                text_string(text, "&lt;");
            else if (*at == '>')
                text_string(text, "&gt;");
            else
                text_char(text, *at);
        }
    }
    free(bytes);
}

static void element(struct text *text, const char *indent, const char *name, const char *value) {
    text_format(text, "%s<%s>", indent, name);
    xml_escaped(text, value);
    text_format(text, "</%s>\n", name);
}

// ---- the document ------------------------------------------------------------------------------

static void words(struct text *text, const char *name, const char *const *words) {
    text_format(text, "  <%s>\n", name);
    for (size_t i = 0; words[i]; i++)
        element(text, "    ", i ? "arg" : "exe", words[i]);
    text_format(text, "  </%s>\n", name);
}

void xml_begin(struct text *text, const struct xml_head *head) {
    text_format(text,
                "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n"
                "<protocolversion>%u</protocolversion>\n<protocoltool>%s</protocoltool>\n\n"
                "<preamble>\n",
                head->protocol, head->tool);
    for (size_t i = 0; head->preamble[i]; i++)
        element(text, "  ", "line", head->preamble[i]);
    text_format(text, "</preamble>\n\n<pid>%d</pid>\n<ppid>%d</ppid>\n<tool>%s</tool>\n", head->pid,
                head->parent, head->tool);
    for (size_t i = 0; head->qualifiers[i]; i += 2) {
        text_string(text, "<logfilequalifier> <var>");
        xml_escaped(text, head->qualifiers[i]);
        text_string(text, "</var> <value>");
        xml_escaped(text, head->qualifiers[i + 1]);
        text_string(text, "</value> </logfilequalifier>\n");
    }
    if (head->comment)
        text_format(text, "<usercomment>%s</usercomment>\n", head->comment);
    text_string(text, "\n<args>\n");
    words(text, "vargv", head->own_words);
    words(text, "argv", head->words);
    text_string(text, "</args>\n\n");
}

void xml_status(struct text *text, const char *state, uint64_t milliseconds) {
    uint64_t seconds = milliseconds / 1000;
    text_format(text,
                "<status>\n  <state>%s</state>\n  <time>%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64
                ":%02" PRIu64 ".%03" PRIu64 " </time>\n</status>\n\n",
                state, seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60,
                milliseconds % 1000);
}

// ---- parts of an error -------------------------------------------------------------------------

static void add_frame(struct text *text, const struct named_frame *frame) {
    const struct symbol_frame *symbol = &frame->symbol;
    text_format(text, "    <frame>\n      <ip>0x%" PRIX64 "</ip>\n", frame->address);
    if (symbol->object)
        element(text, "      ", "obj", symbol->object);
    if (symbol->name)
        element(text, "      ", "fn",
                stack_text_is_below_main(symbol) ? "(below main)" : symbol->name);
    if (symbol->file && symbol->directory && symbol->directory[0])
        element(text, "      ", "dir", symbol->directory);
    if (symbol->file)
        element(text, "      ", "file", symbol->file);
    if (symbol->file && symbol->line)
        text_format(text, "      <line>%u</line>\n", symbol->line);
    text_string(text, "    </frame>\n");
}

void xml_stack(struct text *text, const struct named_stack *stack) {
    text_string(text, "  <stack>\n");
    for (size_t i = 0; i < stack->shown; i++)
        add_frame(text, &stack->frames[i]);
    text_string(text, "  </stack>\n");
}

static void write_stack(void *context, const struct named_stack *stack) {
    xml_stack(((struct writing *)context)->text, stack);
}

static void write_headline(void *context, const char *line) {
    struct writing *writing = context;
    if (!writing->loss) {
        element(writing->text, "  ", "what", line);
        return;
    }
    const struct loss *facts = &writing->loss->facts;
    text_string(writing->text, "  <xwhat>\n");
    element(writing->text, "    ", "text", line);
    text_format(writing->text,
                "    <leakedbytes>%" PRIu64 "</leakedbytes>\n"
                "    <leakedblocks>%" PRIu64 "</leakedblocks>\n  </xwhat>\n",
                facts->bytes + facts->indirect_bytes, facts->blocks);
}

static void write_remark(void *context, const char *line) {
    element(((struct writing *)context)->text, "  ", "auxwhat", line);
}

// The suppression, once in elements and once as text. `raw` is the text: its lines are the
// elements.
static void add_suppression(struct text *text, const char *raw) {
    text_string(text, "  <suppression>\n    <sname>insert_a_suppression_name_here</sname>\n");
    char *copy = base_copy(raw);
    unsigned number = 0;
    for (char *rest = copy, *line; (line = strsep(&rest, "\n")); number++) {
        line += strspn(line, " ");
        if (number == 2)
            element(text, "    ", "skind", line);
        if (number <= 2 || !*line || *line == '}')
            continue;
        bool function = strncmp(line, "fun:", 4) == 0, object = strncmp(line, "obj:", 4) == 0;
        if (!function && !object) {
            element(text, "    ", "skaux", line);
            continue;
        }
        text_format(text, "    <sframe> <%s>", function ? "fun" : "obj");
        xml_escaped(text, line + 4);
        text_format(text, "</%s> </sframe>\n", function ? "fun" : "obj");
    }
    free(copy);
    text_string(text, "    <rawtext>\n<![CDATA[\n");
    // The one thing that CDATA cannot hold is its own end.
    for (const char *at = raw; *at; at++)
        text_char(text, strncmp(at, "]]>", 3) == 0 ? '?' : *at);
    text_string(text, "]]>\n    </rawtext>\n  </suppression>\n");
}

static void begin_error(struct text *text, uint64_t unique, int thread, const char *thread_name,
                        const char *kind) {
    text_format(text, "<error>\n  <unique>0x%" PRIx64 "</unique>\n  <tid>%d</tid>\n", unique,
                thread);
    if (*thread_name)
        element(text, "  ", "threadname", thread_name);
    text_format(text, "  <kind>%s</kind>\n", kind);
}

static void end_error(struct text *text, struct text *suppression, bool wanted) {
    if (wanted)
        add_suppression(text, suppression->bytes);
    text_free(suppression);
    text_string(text, "</error>\n\n");
}

static void add_descriptor(struct text *text, const struct named_finding *finding) {
    const char *path = strchr(finding->names[0], '/');
    if (!finding_kind_is_core(finding->facts.kind))
        return;
    text_format(text, "  <fd>%" PRId64 "</fd>\n", finding->facts.value);
    if (path)
        element(text, "  ", "path", path);
}

void xml_finding(struct text *text, const struct named_finding *finding, uint64_t unique,
                 const struct stack_text_options *options, bool suppression) {
    struct writing writing = {.text = text};
    struct text raw = {0};
    begin_error(text, unique, finding->facts.thread, finding->facts.thread_name,
                finding_kind_xml(finding->facts.kind));
    add_descriptor(text, finding);
    finding_write(
        finding, options,
        &(struct finding_writer){write_headline, write_stack, write_remark, &writing, NULL});
    finding_suppression(finding, &raw);
    end_error(text, &raw, suppression);
}

void xml_loss(struct text *text, const struct named_loss *loss, uint64_t unique, size_t index,
              size_t count, bool is_delta, const struct stack_text_options *options,
              bool suppression) {
    struct writing writing = {.text = text, .loss = loss};
    struct text raw = {0};
    begin_error(text, unique, 1, "", leak_kind_xml(loss->facts.kind));
    loss_write(loss, index, count, is_delta, options,
               &(struct finding_writer){write_headline, write_stack, write_remark, &writing, NULL});
    loss_suppression(loss, &raw);
    end_error(text, &raw, suppression);
}

// ---- summaries ---------------------------------------------------------------------------------

static void add_number(struct text *text, const char *name, uint64_t number) {
    text_format(text, "    <%s>%" PRIu64 "</%s>\n", name, number, name);
}

void xml_heap_summary(struct text *text, const struct xml_heap *heap) {
    text_string(text, "<heap_summary>\n  <memory_in_use_at_exit>\n");
    add_number(text, "bytes", heap->live_bytes);
    add_number(text, "blocks", heap->live_blocks);
    text_string(text, "  </memory_in_use_at_exit>\n  <total_heap_usage>\n");
    add_number(text, "allocs", heap->allocations);
    add_number(text, "frees", heap->frees);
    add_number(text, "bytes_allocated", heap->bytes);
    text_format(text,
                "  </total_heap_usage>\n</heap_summary>\n\n"
                "<all_heap_blocks_freed>%s</all_heap_blocks_freed>\n\n",
                heap->live_blocks ? "false" : "true");
}

void xml_leak_summary(struct text *text, const struct leak_sums *sums) {
    static const struct {
        const char *name;
        unsigned kind;
    } rows[] = {{"definitely_lost", LEAK_DEFINITE},
                {"indirectly_lost", LEAK_INDIRECT},
                {"possibly_lost", LEAK_POSSIBLE},
                {"still_reachable", LEAK_REACHABLE},
                {"suppressed", LEAK_KINDS}};
    text_string(text, "<leak_summary>\n");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        text_format(text, "  <%s>\n", rows[i].name);
        add_number(text, "bytes", sums->bytes[rows[i].kind]);
        add_number(text, "in_blocks", sums->blocks[rows[i].kind]);
        text_format(text, "  </%s>\n", rows[i].name);
    }
    text_string(text, "</leak_summary>\n\n");
}

void xml_error_summary(struct text *text, uint64_t errors, uint64_t contexts, uint64_t suppressed,
                       uint64_t suppressed_contexts) {
    text_format(text,
                "<error_summary>\n  <errors>%" PRIu64 "</errors>\n  <error_contexts>%" PRIu64
                "</error_contexts>\n  <suppressed>%" PRIu64
                "</suppressed>\n  <suppressed_contexts>%" PRIu64
                "</suppressed_contexts>\n</error_summary>\n\n",
                errors, contexts, suppressed, suppressed_contexts);
}

void xml_signal(struct text *text, const struct xml_signal *signal) {
    text_format(text,
                "<fatal_signal>\n  <tid>%d</tid>\n  <signo>%d</signo>\n  <signame>%s</signame>\n"
                "  <sicode>%d</sicode>\n",
                signal->thread, signal->signal, signal->name, signal->code);
    if (signal->event)
        text_format(text, "  <event>%s</event>\n  <siaddr>0x%" PRIx64 "</siaddr>\n", signal->event,
                    signal->address);
    xml_stack(text, signal->stack);
    text_string(text, "</fatal_signal>\n\n");
}

void xml_message(struct text *text, int thread, const char *thread_name, const char *message,
                 const struct named_stack *stack) {
    text_format(text, "<clientmsg>\n  <tid>%d</tid>\n", thread);
    if (*thread_name)
        element(text, "  ", "threadname", thread_name);
    text_string(text, "  <text>");
    xml_escaped(text, message);
    text_string(text, "\n  </text>\n");
    if (stack)
        xml_stack(text, stack);
    text_string(text, "</clientmsg>\n");
}
