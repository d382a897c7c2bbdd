#include "report/findings/named_finding.h"

void leak_sums_add(struct leak_sums *sums, const struct leak_graph_block *blocks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        unsigned heuristic = blocks[i].heuristic;
        sums->blocks[blocks[i].kind]++;
        sums->bytes[blocks[i].kind] += blocks[i].size;
        if (heuristic) {
            sums->heuristic_blocks[heuristic - 1]++;
            sums->heuristic_bytes[heuristic - 1] += blocks[i].size;
        }
    }
}

static void add_sum(struct text *text, const struct leak_sums *now, const struct leak_sums *before,
                    unsigned bucket) {
    text_format(text, "\n%18s: ", bucket < LEAK_KINDS ? leak_kind_words(bucket) : "suppressed");
    text_commas(text, now->bytes[bucket]);
    if (before)
        text_delta(text, now->bytes[bucket], before->bytes[bucket], true);
    text_string(text, " bytes in ");
    text_commas(text, now->blocks[bucket]);
    if (before)
        text_delta(text, now->blocks[bucket], before->blocks[bucket], true);
    text_string(text, " blocks");
}

static void add_heuristics(struct text *text, const struct leak_sums *sums) {
    bool any = false;
    for (unsigned i = 0; i < LEAK_HEURISTICS; i++) {
        if (!sums->heuristic_blocks[i])
            continue;
        if (!any)
            text_string(text, "\n                      of which reachable via heuristic:");
        any = true;
        text_format(text, "\n                        %-19s: ", leak_heuristic_name(i));
        text_commas(text, sums->heuristic_bytes[i]);
        text_string(text, " bytes in ");
        text_commas(text, sums->heuristic_blocks[i]);
        text_string(text, " blocks");
    }
}

void leak_sums_text(const struct leak_sums *sums, const struct leak_sums *before,
                    struct text *text) {
    text_string(text, "LEAK SUMMARY:");
    for (unsigned i = 0; i < LEAK_KINDS; i++)
        add_sum(text, sums, before, i);
    add_heuristics(text, sums);
    add_sum(text, sums, before, LEAK_KINDS);
}
