// XML of memcheck as documents. Leaks are a tree of calls by bytes, errors one by number. A loss
// belongs to who wanted the memory, not to malloc.
#include <stdlib.h>
#include <string.h>

#include "profile/findings/leaks.h"
#include "report/heap/names.h"
#include "view/documents/document.h"
#include "view/documents/findings_file.h"

enum { BY_LEAKED, BY_ERRORS, BY_REACHABLE };

static bool is_reachable(const struct findings_finding *finding) {
    return leak_kind_of_xml(finding->kind) == LEAK_REACHABLE;
}

static uint64_t value_of(const struct findings_finding *finding, unsigned metric) {
    if (metric == BY_ERRORS)
        return finding->is_leak ? 0 : finding->count;
    bool is_meant = finding->is_leak && is_reachable(finding) == (metric == BY_REACHABLE);
    return is_meant ? finding->own_bytes : 0;
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
    uint64_t reachable = sum(file, BY_REACHABLE);
    if (reachable)
        document->metrics[document->metric_count++] =
            (struct document_metric){"reachable", "bytes still reachable", "bytes", reachable};
    return NULL;
}

static void free_findings(struct document *document) {
    if (document->findings)
        findings_file_free(document->findings);
}

static void add_stack(struct calltree *tree, const struct findings_section *stack, size_t first,
                      uint64_t value) {
    uint32_t path[FINDINGS_DEPTH];
    size_t depth = 0;
    for (size_t i = stack->frame_count; i-- > first;) {
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

// The innermost frame of a loss that does not only allocate.
static size_t wanted_by(const struct findings_finding *finding) {
    const struct findings_section *stack = &finding->sections[0];
    size_t first = 0;
    while (finding->is_leak && first + 1 < stack->frame_count &&
           heap_names_allocates(stack->frames[first].function))
        first++;
    return first;
}

static struct calltree *tree_of(struct document *document, unsigned metric) {
    struct calltree *tree = calltree_new(DOCUMENT_NODES_MAX);
    for (size_t i = 0; i < document->findings->count; i++) {
        const struct findings_finding *finding = &document->findings->list[i];
        uint64_t value = value_of(finding, metric);
        if (value && finding->section_count)
            add_stack(tree, &finding->sections[0], wanted_by(finding), value);
    }
    calltree_finish(tree);
    return tree;
}

static bool tells_libraries(const struct document *document) {
    const struct findings_file *file = document->findings;
    for (size_t i = 0; i < file->count; i++)
        for (size_t j = 0; file->list[i].section_count && j < file->list[i].sections[0].frame_count;
             j++)
            if (file->list[i].sections[0].frames[j].object)
                return true;
    return false;
}

static void add_facts(struct document *document, const struct document_sink *sink) {
    const struct findings_file *file = document->findings;
    uint64_t contexts = 0, leaks = 0, blocks = 0;
    for (size_t i = 0; i < file->count; i++) {
        contexts += !file->list[i].is_leak;
        leaks += file->list[i].is_leak;
        blocks += is_reachable(&file->list[i]) ? 0 : file->list[i].leaked_blocks;
    }
    document_fact(sink, "errors", sum(file, BY_ERRORS), "");
    document_fact(sink, "different errors", contexts, "");
    document_fact(sink, "loss records", leaks, "");
    document_fact(sink, "leaked", sum(file, BY_LEAKED), "bytes");
    document_fact(sink, "blocks leaked", blocks, "blocks");
    if (document->metric_count > BY_REACHABLE)
        document_fact(sink, "still reachable", sum(file, BY_REACHABLE), "bytes");
    if (file->tool)
        document_fact_text(sink, "tool", file->tool);
    if (file->pid)
        document_fact_text(sink, "process", file->pid);
    if (file->state)
        document_fact_text(sink, "state of the run", file->state);
}

static const char *const views[] = {"findings", NULL};

const struct document_format document_findings = {
    .name = "memcheck",
    .help = "XML of memcheck",
    .is_one = findings_file_is_one,
    .read = read_findings,
    .free = free_findings,
    .tree = tree_of,
    .tells_libraries = tells_libraries,
    .facts = add_facts,
    .views = views,
};
