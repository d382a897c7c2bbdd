// The tree of calls and what is written from it.
#include <stdlib.h>
#include <string.h>

#include "profile/stacks/calltree.h"
#include "profile/stacks/stack_counts.h"
#include "report/flame/flamegraph.h"
#include "report/flame/folded.h"
#include "unit.h"

static void add(struct calltree *tree, const char *path, uint64_t value) {
    char copy[256];
    uint32_t functions[64];
    size_t count = 0;
    snprintf(copy, sizeof copy, "%s", path);
    for (char *name = strtok(copy, ";"); name; name = strtok(NULL, ";"))
        functions[count++] = calltree_function(tree, name, "lib.so");
    calltree_add(tree, functions, count, value);
}

static char *written(const struct calltree *tree, bool folded) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    struct flamegraph_options options = {.title = "a <b>", .details = "d", .unit = "samples"};
    if (folded)
        folded_write(out, tree);
    else
        flamegraph_write(out, tree, &options);
    fclose(out);
    return text;
}

static const struct calltree_function *function(struct calltree *tree, const char *name) {
    return &tree->functions[calltree_function(tree, name, "lib.so")];
}

TEST(totals) {
    struct calltree *tree = calltree_new(100);
    add(tree, "main;a;a;b", 5);
    add(tree, "main;b;a", 3);
    add(tree, "main", 2);
    calltree_finish(tree);
    calltree_check(tree);
    CHECK_EQ(tree->root.total, 10);
    CHECK_EQ(function(tree, "main")->self, 2);
    CHECK_EQ(function(tree, "main")->total, 10);
    // However often a function is in a stack, it counts once.
    CHECK_EQ(function(tree, "a")->total, 8);
    CHECK_EQ(function(tree, "a")->self, 3);
    CHECK_EQ(function(tree, "b")->total, 8);
    // Finishing again changes nothing.
    calltree_finish(tree);
    CHECK_EQ(function(tree, "a")->total, 8);
    calltree_free(tree);
}

TEST(bounded) {
    struct calltree *tree = calltree_new(3);
    add(tree, "main;a;b;c;d", 4);
    add(tree, "other", 1);
    calltree_finish(tree);
    calltree_check(tree);
    CHECK_EQ(tree->node_count, 3);
    CHECK_EQ(tree->root.total, 5);
    CHECK_EQ(tree->shortened, 5);
    calltree_free(tree);
}

TEST(folded_lines) {
    struct calltree *tree = calltree_new(100);
    add(tree, "main;z", 1);
    add(tree, "main;a\n", 2);
    add(tree, "main", 3);
    uint32_t odd = calltree_function(tree, "[u8; 4]", "");
    calltree_add(tree, &odd, 1, 4);
    calltree_finish(tree);
    char *text = written(tree, true);
    CHECK(strcmp(text, "[u8: 4] 4\nmain 3\nmain;a\\x0A 2\nmain;z 1\n") == 0);
    free(text);
    calltree_free(tree);
}

// The order in which stacks come makes no difference.
TEST(same_bytes) {
    static const char *const paths[] = {"main;a;b", "main;c", "main;a", "x;y;z", "main;a;c"};
    char *texts[2];
    for (int turn = 0; turn < 2; turn++) {
        struct calltree *tree = calltree_new(100);
        for (size_t i = 0; i < 5; i++) {
            size_t at = turn ? 4 - i : i;
            add(tree, paths[at], at + 1);
        }
        calltree_finish(tree);
        texts[turn] = written(tree, false);
        calltree_free(tree);
    }
    CHECK(strcmp(texts[0], texts[1]) == 0);
    CHECK(strstr(texts[0], "data-v=\"15\"") != NULL);
    free(texts[0]);
    free(texts[1]);
}

TEST(hostile_names) {
    struct calltree *tree = calltree_new(100);
    add(tree, "<img onerror=\"x\">&", 1);
    add(tree, "]]></script>", 1);
    add(tree, "\x01\x7f\xff\xc0\xaf", 1);       // controls, and bytes that are not UTF-8
    add(tree, "\xed\xa0\x80\xef\xbf\xbf", 1);   // a surrogate, and no character
    add(tree, "\xe2\x80\xae\xc2\x85turned", 1); // right to left, and a control of two bytes
    add(tree, "gr\xc3\xbc\xc3\x9f\xf0\x9f\x98\x80", 1);
    add(tree, "cut\xf0\x9f", 1); // ends within a character
    calltree_finish(tree);
    char *text = written(tree, false);
    CHECK(strstr(text, "<img") == NULL);
    CHECK(strstr(text, "&lt;img onerror=&quot;x&quot;&gt;&amp;") != NULL);
    CHECK(strstr(text, "]]&gt;&lt;/script&gt;") != NULL);
    CHECK(strstr(text, "\\x01\\x7F\\xFF\\xC0\\xAF") != NULL);
    CHECK(strstr(text, "\\xED\\xA0\\x80\\xEF\\xBF\\xBF") != NULL);
    CHECK(strstr(text, "\\xE2\\x80\\xAE\\xC2\\x85turned") != NULL);
    CHECK(strstr(text, "gr\xc3\xbc\xc3\x9f\xf0\x9f\x98\x80") != NULL);
    CHECK(strstr(text, "cut\\xF0\\x9F") != NULL);
    CHECK(strstr(text, "a &lt;b&gt;") != NULL);
    free(text);
    calltree_free(tree);
}

TEST(counted_stacks) {
    struct stack_counts counts = {0};
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 5000; i++) {
            uint64_t addresses[] = {i, i * i, 7};
            stack_counts_add(&counts, 1, addresses, 3, false, 1);
        }
    }
    uint64_t first[] = {0, 0, 7};
    stack_counts_add(&counts, 2, first, 3, false, 1); // another address space
    stack_counts_add(&counts, 1, first, 3, true, 1);  // broken
    stack_counts_add(&counts, 1, first, 2, false, 1); // shorter
    CHECK_EQ(counts.count, 5003);
    for (size_t i = 0; i < counts.count; i++)
        CHECK_EQ(counts.entries[i].value, i < 5000 ? 3 : 1);
    CHECK(stack_counts_bytes(&counts) > 5000 * 3 * 8);
    stack_counts_clear(&counts);
    CHECK_EQ(stack_counts_bytes(&counts), 0);
}

UNIT_MAIN()
