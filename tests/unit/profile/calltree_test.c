// Parts of call trees, and events that are computed from others.
#include <stdlib.h>
#include <string.h>

#include "profile/costs/derived.h"
#include "profile/stacks/calltree_filter.h"
#include "unit.h"

enum { MAIN, PARSE, EVAL, ALLOC, FUNCTIONS };

// main;parse;alloc 1, main;eval;alloc 2, main;eval;eval;alloc 4, main;eval 8, parse 16
static struct calltree *make(void) {
    static const char *const names[] = {"main", "parse", "eval", "alloc"};
    static const struct {
        uint32_t path[4];
        size_t count;
        uint64_t value;
    } stacks[] = {{{MAIN, PARSE, ALLOC}, 3, 1},
                  {{MAIN, EVAL, ALLOC}, 3, 2},
                  {{MAIN, EVAL, EVAL, ALLOC}, 4, 4},
                  {{MAIN, EVAL}, 2, 8},
                  {{PARSE}, 1, 16}};
    struct calltree *tree = calltree_new(1000);
    for (size_t i = 0; i < FUNCTIONS; i++)
        CHECK_EQ(calltree_function(tree, names[i], ""), i);
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
        calltree_add(tree, stacks[i].path, stacks[i].count, stacks[i].value);
    calltree_finish(tree);
    return tree;
}

static uint64_t total_of(const struct calltree *tree, const char *name) {
    for (size_t i = 0; i < tree->function_count; i++)
        if (strcmp(tree->functions[i].name, name) == 0)
            return tree->functions[i].total;
    return UINT64_MAX;
}

static struct calltree *filtered(const struct calltree_filter *filter) {
    struct calltree *tree = make();
    struct calltree *part = calltree_filtered(tree, filter, 1000);
    calltree_check(part);
    calltree_free(tree);
    return part;
}

TEST(focus_keeps_stacks_with_a_function) {
    struct calltree *part =
        filtered(&(struct calltree_filter){.focus = (bool[FUNCTIONS]){[EVAL] = true}});
    CHECK_EQ(part->root.total, 14);
    CHECK_EQ(total_of(part, "main"), 14);
    CHECK_EQ(total_of(part, "parse"), 0);
    calltree_free(part);
}

TEST(ignore_drops_stacks_with_a_function) {
    struct calltree *part =
        filtered(&(struct calltree_filter){.ignore = (bool[FUNCTIONS]){[EVAL] = true}});
    CHECK_EQ(part->root.total, 17);
    CHECK_EQ(total_of(part, "alloc"), 1);
    calltree_free(part);
}

// What hidden functions cost stays with their callers; without callers, with the root.
TEST(hide_leaves_frames_out) {
    struct calltree *part = filtered(
        &(struct calltree_filter){.hide = (bool[FUNCTIONS]){[PARSE] = true, [ALLOC] = true}});
    CHECK_EQ(part->root.total, 31);
    CHECK_EQ(part->root.self, 16);
    CHECK_EQ(part->functions[MAIN].self, 1);
    CHECK_EQ(part->functions[EVAL].self, 14);
    calltree_free(part);
}

// Both halves hold what the function holds in all, recursion counted once.
TEST(callers_and_callees_of_a_function) {
    bool eval[FUNCTIONS] = {[EVAL] = true};
    struct calltree *below = filtered(&(struct calltree_filter){.at = eval});
    CHECK_EQ(below->root.total, 14);
    CHECK_EQ(below->root.count, 1);
    CHECK_EQ(below->root.children[0]->total, 14);
    CHECK_EQ(below->root.children[0]->self, 8);
    CHECK_EQ(total_of(below, "main"), 0);
    struct calltree *above =
        filtered(&(struct calltree_filter){.at = eval, .side = CALLTREE_ABOVE});
    CHECK_EQ(above->root.total, 14);
    CHECK_EQ(above->functions[EVAL].self, 14);
    CHECK_EQ(total_of(above, "alloc"), 0);
    calltree_free(below);
    calltree_free(above);
}

static struct cost_profile *read_text(const char *text) {
    struct cost_profile *profile = costs_new();
    FILE *in = fmemopen((void *)text, strlen(text), "r");
    char *problem = costs_read(profile, in);
    fclose(in);
    CHECK(!problem);
    return profile;
}

TEST(derived_events_are_sums) {
    struct cost_profile *profile = read_text("# callgrind format\nevents: Ir D1mr DLmr Bcm\n"
                                             "fn=main\n1 100 5 2 3\ncfn=work\ncalls=1 1\n"
                                             "2 50 1 0 0\nfn=work\n1 50 1 0 0\n");
    costs_derive(profile);
    CHECK_EQ(profile->event_count, 8);
    int estimate = costs_event(profile, "CEst");
    CHECK_EQ(profile->totals[estimate], 150 + 10 * 6 + 100 * 2 + 10 * 3);
    const uint64_t *own = cost_values(profile, profile->functions[0].own);
    CHECK_EQ(own[0], 100);
    CHECK_EQ(own[estimate], 100 + 10 * 5 + 100 * 2 + 10 * 3);
    CHECK_EQ(cost_values(profile, profile->calls[0].inclusive)[estimate], 60);
    CHECK_EQ(cost_values(profile, profile->lines[1].own)[costs_event(profile, "L1m")], 1);
    costs_free(profile);
}

TEST(formulas_are_sums_with_weights) {
    struct cost_profile *profile = read_text("# callgrind format\nevents: Ir D1mr DLmr\n"
                                             "fn=main\n1 100 5 2\ncfn=work\ncalls=1 1\n"
                                             "2 50 1 0\nfn=work\n1 50 1 0\n");
    static const char *const wrong[] = {"",      "Ir +", "+ Ir",   "Ir + Dx",    "3",
                                        "Ir Ir", "2 * ", "Ir - 2", "99999999 Ir"};
    costs_derive(profile);
    unsigned count = profile->event_count;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!costs_add_formula(profile, wrong[i]));
    CHECK_EQ(profile->event_count, count);
    CHECK(costs_add_formula(profile, " 2 Ir+3*D1mr + D1mr "));
    CHECK(costs_add_formula(profile, "10 L1m"));
    CHECK_EQ(profile->totals[count], 2 * 150 + 4 * 6);
    CHECK_EQ(profile->totals[count + 1], 60);
    CHECK_EQ(cost_values(profile, profile->functions[0].own)[count], 2 * 100 + 4 * 5);
    CHECK_EQ(cost_values(profile, profile->calls[0].inclusive)[count], 2 * 50 + 4);
    CHECK_EQ(cost_values(profile, profile->functions[0].own)[0], 100);
    while (profile->event_count < COST_EVENTS)
        CHECK(costs_add_formula(profile, "Ir"));
    CHECK(!costs_add_formula(profile, "Ir"));
    costs_free(profile);
}

TEST(instructions_alone_are_no_estimate) {
    struct cost_profile *profile = read_text("# callgrind format\nevents: Ir\nfn=main\n1 100\n");
    costs_derive(profile);
    CHECK_EQ(profile->event_count, 1);
    costs_free(profile);
}

UNIT_MAIN()
