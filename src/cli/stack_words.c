#include "cli/stack_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/words.h"
#include "report/flame/flamegraph.h"
#include "report/flame/folded.h"
#include "report/massif/file.h"
#include "report/flame/stack_file.h"
#include "report/shared/tree_out.h"

#define START     4096
#define NODES_MAX ((size_t)1 << 22)

bool stack_words_is_one(const char *path) {
    char start[START];
    size_t size = words_start(path, start, sizeof start);
    // A massif.out may begin as stacks do.
    return size && !massif_file_is_one(start, size) && stack_file_is_one(start, size);
}

// The finished tree; NULL after a message.
static struct calltree *read_tree(const char *path, struct stack_info *info) {
    FILE *in = fopen(path, "re");
    *info = (struct stack_info){0};
    if (!in) {
        words_fail("cannot read '%s': %s", path, strerror(errno));
        return NULL;
    }
    struct calltree *tree = calltree_new(NODES_MAX);
    char *problem = stack_file_read(in, tree, info);
    fclose(in);
    if (!problem) {
        calltree_finish(tree);
        return tree;
    }
    words_fail("cannot read '%s': %s", path, problem);
    free(problem);
    stack_file_free(info);
    calltree_free(tree);
    return NULL;
}

static void write_pprof(FILE *out, const struct calltree *tree, const struct stack_info *info) {
    const char *unit = info->unit ? info->unit : "samples";
    struct pprof *pprof = pprof_new();
    pprof_type(pprof, unit, "count", true);
    if (info->frequency)
        pprof_period(pprof, "cpu", "nanoseconds", 1000000000 / info->frequency);
    tree_pprof_samples(pprof, tree, NULL, 0, 1);
    pprof_write(pprof, out);
}

static void write_flamegraph(FILE *out, const struct calltree *tree, const struct stack_info *info,
                             const char *path) {
    flamegraph_write(
        out, tree,
        &(struct flamegraph_options){.title = info->command ? info->command : path,
                                     .details = info->details ? info->details : "folded stacks",
                                     .unit = info->unit ? info->unit : "samples"});
}

int stack_words_export(const char *path, const char *format, const char *to) {
    static const char *const formats[] = {"collapsed", "speedscope", "pprof", "flamegraph"};
    size_t i = 0;
    while (i < 4 && strcmp(formats[i], format) != 0)
        i++;
    if (i == 4)
        return words_fail("'%s' holds stacks; they can be exported as collapsed, flamegraph, "
                          "speedscope or pprof",
                          path);
    struct stack_info info;
    struct calltree *tree = read_tree(path, &info);
    if (!tree)
        return WORDS_FAILED;
    FILE *out = words_output(to, path);
    if (out && i == 0)
        folded_write(out, tree);
    else if (out && i == 1)
        tree_speedscope(out, tree, info.command ? info.command : path);
    else if (out && i == 2)
        write_pprof(out, tree, &info);
    else if (out)
        write_flamegraph(out, tree, &info, path);
    int status = out && words_close(out, to) ? WORDS_DONE : WORDS_FAILED;
    stack_file_free(&info);
    calltree_free(tree);
    return status;
}
