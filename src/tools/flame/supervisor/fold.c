#include "tools/flame/supervisor/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "supervisor/tool.h"

#define NOT_FOLDED UINT32_MAX

// What is known of a function of the tree, by its number.
struct judged {
    uint32_t as;      // the function that a run of it becomes, or NOT_FOLDED
    bool is_language; // alloc, core, std: any other name is better for a run
    bool is_async;
};

struct flame_fold {
    struct calltree *tree;
    bool only_mine;
    struct judged *judged;
    size_t count;
};

struct flame_fold *flame_fold_new(struct calltree *tree, bool only_mine) {
    struct flame_fold *fold = base_allocate(sizeof *fold);
    *fold = (struct flame_fold){.tree = tree, .only_mine = only_mine};
    return fold;
}

void flame_fold_free(struct flame_fold *fold) {
    if (fold)
        free(fold->judged);
    free(fold);
}

static uint32_t bracketed(struct flame_fold *fold, const char *name, size_t length) {
    struct text text = {0};
    text_format(&text, "[%.*s]", (int)length, name);
    uint32_t function = calltree_function(fold->tree, text.bytes, "");
    text_free(&text);
    return function;
}

static struct judged judge(struct flame_fold *fold, uint32_t number) {
    // Adding a function may move the others, but not their texts.
    const char *name = fold->tree->functions[number].name;
    const char *group = fold->tree->functions[number].group;
    struct own_runtime runtime;
    bool is_runtime = own_runtime(name, &runtime);
    const char *tail = strrchr(name, ':');
    struct judged judged = {.as = NOT_FOLDED,
                            .is_language = is_runtime && runtime.is_language,
                            .is_async = strncmp(tail ? tail + 1 : name, "{async ", 7) == 0};
    if (name[0] == '[' && !*group)
        return judged;
    if (fold->only_mine ? own_frame(name, NULL, *group ? group : NULL) : !is_runtime)
        return judged;
    if (is_runtime)
        judged.as = bracketed(fold, runtime.name, runtime.length);
    else if (*group == '[')
        judged.as = calltree_function(fold->tree, group, "");
    else
        judged.as = bracketed(fold, *group ? group : "other", strlen(*group ? group : "other"));
    return judged;
}

static const struct judged *judged_of(struct flame_fold *fold, uint32_t number) {
    while (fold->count <= number) {
        struct judged judged = judge(fold, (uint32_t)fold->count);
        *vector_push(fold->judged, fold->count) = judged;
    }
    return &fold->judged[number];
}

size_t flame_fold_path(struct flame_fold *fold, uint32_t *path, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count;) {
        struct judged first = *judged_of(fold, path[i]);
        if (first.as == NOT_FOLDED) {
            path[kept++] = path[i++];
            continue;
        }
        uint32_t as = first.as;
        bool is_language = first.is_language;
        bool follows_async = kept && judged_of(fold, path[kept - 1])->is_async;
        for (; i < count && judged_of(fold, path[i])->as != NOT_FOLDED; i++) {
            struct judged one = *judged_of(fold, path[i]);
            if (is_language && !one.is_language) {
                as = one.as;
                is_language = false;
            }
        }
        if (!follows_async || i == count || !judged_of(fold, path[i])->is_async)
            path[kept++] = as;
    }
    return kept;
}
