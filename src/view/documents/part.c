#include "view/documents/part.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profile/stacks/calltree_filter.h"

#define EXPRESSION_MOST 300 // bytes

static bool is_given(const char *text) {
    return text && *text;
}

bool document_part_is_any(const struct document_part *part) {
    return is_given(part->focus) || is_given(part->ignore) || is_given(part->hide) ||
           is_given(part->below) || is_given(part->above);
}

// ---- expressions ----

// References to groups take time, and nested repetitions memory, without bounds.
static const char *refusal(const char *expression) {
    unsigned repetitions = 0;
    if (strlen(expression) > EXPRESSION_MOST)
        return "it is too long";
    for (const char *at = expression; *at; at++) {
        if (at[0] == '\\' && isdigit((unsigned char)at[1]))
            return "references to groups are not supported";
        repetitions += at[0] == '{' && isdigit((unsigned char)at[1]);
    }
    return repetitions > 1 ? "only one repetition by number is supported" : NULL;
}

static char *complain(const char *expression, const char *why) {
    struct text text = {0};
    text_format(&text, "invalid regular expression '%s': %s", expression, why);
    return text_take(&text);
}

bool *document_part_matches(const struct calltree *tree, const char *expression, char **problem) {
    const char *why = refusal(expression);
    regex_t compiled;
    char text[200];
    int code = why ? 0 : regcomp(&compiled, expression, REG_EXTENDED | REG_ICASE | REG_NOSUB);
    if (code) {
        regerror(code, &compiled, text, sizeof text);
        why = text;
    }
    if (why) {
        *problem = complain(expression, why);
        return NULL;
    }
    bool *matches = base_allocate(tree->function_count + 1);
    for (size_t i = 0; i < tree->function_count; i++)
        matches[i] = regexec(&compiled, tree->functions[i].name, 0, NULL, 0) == 0;
    regfree(&compiled);
    return matches;
}

static bool *named(const struct calltree *tree, const char *name) {
    bool *matches = base_allocate(tree->function_count + 1);
    for (size_t i = 0; i < tree->function_count; i++)
        matches[i] = strcmp(tree->functions[i].name, name) == 0;
    return matches;
}

// ---- trees ----

static bool *optional(const struct calltree *tree, const char *expression, char **problem) {
    return is_given(expression) && !*problem ? document_part_matches(tree, expression, problem)
                                             : NULL;
}

static struct calltree *make_tree(const struct calltree *whole, unsigned shape,
                                  const struct document_part *part, char **problem) {
    const char *at = is_given(part->below) ? part->below : part->above;
    bool *focus = optional(whole, part->focus, problem);
    bool *ignore = optional(whole, part->ignore, problem);
    bool *hide = optional(whole, part->hide, problem);
    bool *around = is_given(at) ? named(whole, at) : NULL;
    struct calltree_filter filter = {focus, ignore, hide, around,
                                     is_given(part->below) ? CALLTREE_BELOW : CALLTREE_ABOVE};
    struct calltree *tree = *problem ? NULL : calltree_filtered(whole, &filter, DOCUMENT_NODES_MAX);
    free(focus);
    free(ignore);
    free(hide);
    free(around);
    if (!tree || !shape)
        return tree;
    struct calltree *shaped = calltree_shaped(tree, shape, DOCUMENT_NODES_MAX);
    calltree_free(tree);
    return shaped;
}

// Names the part among others.
static char *key_of(const struct document_part *part) {
    const char *const texts[] = {part->focus, part->ignore, part->hide, part->below, part->above};
    struct text key = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_format(&key, "%zu:%s", texts[i] ? strlen(texts[i]) : 0, texts[i] ? texts[i] : "");
    return text_take(&key);
}

const struct calltree *document_part_tree(struct document *document, unsigned metric,
                                          unsigned shape, const struct document_part *part,
                                          char **problem) {
    *problem = NULL;
    char *key = key_of(part);
    const struct calltree *tree = document_kept_tree(document, metric, shape, key);
    const struct calltree *whole = tree ? NULL : document_tree(document, metric, 0);
    if (!tree && !whole)
        *problem = base_copy("the file has no stacks");
    if (whole) {
        struct calltree *made = make_tree(whole, shape, part, problem);
        tree = made ? document_keep_tree(document, metric, shape, key, made) : NULL;
    }
    free(key);
    return tree;
}
