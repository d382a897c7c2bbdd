// XML of memcheck as documents. Leaks are a tree of calls by bytes, errors one by number.
#include <stdlib.h>
#include <string.h>

#include "view/document.h"
#include "view/findings_file.h"

enum { BY_LEAKED, BY_ERRORS };

static uint64_t value_of(const struct findings_finding *finding, unsigned metric) {
    if (metric == BY_LEAKED)
        return finding->is_leak ? finding->leaked_bytes : 0;
    return finding->is_leak ? 0 : finding->count;
}

static uint64_t sum(const struct findings_file *file, unsigned metric) {
    uint64_t total = 0;
    for (size_t i = 0; i < file->count; i++)
        total += value_of(&file->list[i], metric);
    return total;
}

static char *read_findings(struct document *document, int fd) {
    char *problem = findings_file_read(fd, &document->findings);
    if (problem)
        return problem;
    const struct findings_file *file = document->findings;
    document->command = file->command;
    if (!file->is_whole)
        document->notice =
            base_copy("the file is cut off: what comes before that is shown, counts are missing");
    document->metrics[0] =
        (struct document_metric){"leaked", "bytes leaked", "bytes", sum(file, BY_LEAKED)};
    document->metrics[1] =
        (struct document_metric){"errors", "number of errors", "errors", sum(file, BY_ERRORS)};
    document->metric_count = 2;
    return NULL;
}

static void free_findings(struct document *document) {
    if (document->findings)
        findings_file_free(document->findings);
}

static void add_stack(struct calltree *tree, const struct findings_section *stack, uint64_t value) {
    uint32_t path[FINDINGS_DEPTH];
    size_t depth = 0;
    for (size_t i = stack->frame_count; i-- > 0;) {
        const struct findings_frame *frame = &stack->frames[i];
        const char *object = frame->object ? heap_file_base(frame->object) : "";
        struct text name = {0};
        if (frame->function)
            text_string(&name, frame->function);
        else
            text_format(&name, "[%s]", *object ? object : "unknown");
        path[depth++] = calltree_function(tree, name.bytes, object);
        text_free(&name);
    }
    calltree_add(tree, path, depth, value);
}

static struct calltree *tree_of(struct document *document, unsigned metric) {
    struct calltree *tree = calltree_new(DOCUMENT_NODES_MAX);
    for (size_t i = 0; i < document->findings->count; i++) {
        const struct findings_finding *finding = &document->findings->list[i];
        uint64_t value = value_of(finding, metric);
        if (value && finding->section_count)
            add_stack(tree, &finding->sections[0], value);
    }
    calltree_finish(tree);
    return tree;
}

static void add_facts(struct document *document, struct json *json) {
    const struct findings_file *file = document->findings;
    uint64_t contexts = 0, leaks = 0, blocks = 0;
    for (size_t i = 0; i < file->count; i++) {
        contexts += !file->list[i].is_leak;
        leaks += file->list[i].is_leak;
        blocks += file->list[i].leaked_blocks;
    }
    document_fact(json, "errors", sum(file, BY_ERRORS), "");
    document_fact(json, "different errors", contexts, "");
    document_fact(json, "loss records", leaks, "");
    document_fact(json, "leaked", sum(file, BY_LEAKED), "bytes");
    document_fact(json, "blocks leaked", blocks, "blocks");
    if (file->tool)
        document_fact_text(json, "tool", file->tool);
    if (file->pid)
        document_fact_text(json, "process", file->pid);
    if (file->state)
        document_fact_text(json, "state of the run", file->state);
}

static const char *const views[] = {"findings", NULL};

const struct document_format document_findings = {
    .name = "memcheck",
    .help = "XML of memcheck",
    .is_one = findings_file_is_one,
    .read = read_findings,
    .free = free_findings,
    .tree = tree_of,
    .facts = add_facts,
    .views = views,
};
