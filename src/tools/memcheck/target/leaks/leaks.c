#include "tools/memcheck/target/leaks/leaks.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tools/memcheck/target/leaks/search.h"

enum check_at_end { CHECK_NONE, CHECK_SUMMARY, CHECK_FULL };

static enum check_at_end at_end = CHECK_SUMMARY;
static unsigned heuristics;
static struct leak_totals last;

// ---- options -----------------------------------------------------------------------------------

void leaks_change_option(const char *name, const char *value) {
    const char *xml = tool_option("xml");
    bool is_xml = xml && strcmp(xml, "yes") == 0;
    if (strcmp(name, "leak-check-heuristics") == 0)
        heuristics = leak_heuristics_in(value);
    else if (strcmp(name, "leak-check") != 0 || is_xml)
        return;
    else if (strcmp(value, "no") == 0)
        at_end = CHECK_NONE;
    else if (strcmp(value, "summary") == 0)
        at_end = CHECK_SUMMARY;
    else if (strcmp(value, "full") == 0 || strcmp(value, "yes") == 0)
        at_end = CHECK_FULL;
}

void leaks_start(void) {
    const char *check = tool_option("leak-check");
    const char *xml = tool_option("xml");
    const char *list = tool_option("leak-check-heuristics");
    if (check)
        leaks_change_option("leak-check", check);
    if (xml && strcmp(xml, "yes") == 0)
        at_end = CHECK_FULL;
    heuristics = leak_heuristics_in(list ? list : "all");
    records_start();
}

// ---- a search ----------------------------------------------------------------------------------

static void search_free(struct search *search) {
    list_free(&search->held, sizeof(uint64_t));
    list_free(&search->leaders, sizeof(struct leak_leader));
    for (unsigned i = 0; i < LEAK_THREADS; i++)
        nearest_free(&search->nearest[i]);
    ranges_free(&search->roots);
    ranges_free(&search->inner);
    ranges_free(&search->tables);
    ranges_free(&search->code);
    blocks_free(&search->blocks);
    if (search->pagemap >= 0)
        close(search->pagemap);
}

// While the other threads are stopped.
static bool search_all(struct search *search, struct leak_helpers *helpers, unsigned by) {
    search->heuristics = by;
    search->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    return blocks_collect(&search->blocks) && search_find_memory(search) &&
           mark_all(search, helpers) && lost_cliques(search);
}

// The records of the latest search by their numbers, for block_list.
static struct record_key {
    uint32_t stack;
    uint8_t kind;
} * keys;
static size_t key_count;

static void keep_records(const struct leak_search *result) {
    search_unmap(keys, key_count * sizeof *keys);
    keys = search_map(result->record_count * sizeof *keys);
    key_count = keys ? result->record_count : 0;
    for (size_t i = 0; i < key_count; i++)
        keys[i] = (struct record_key){result->records[i].stack, result->records[i].kind};
}

size_t leaks_record_count(void) {
    return key_count;
}

static uint32_t record_of(enum leak_kind kind, uint32_t stack) {
    for (size_t i = 0; i < key_count; i++)
        if (keys[i].kind == kind && records_same_stack(keys[i].stack, stack))
            return (uint32_t)i + 1;
    return 0;
}

bool leaks_each_block(leak_block_visit *visit, void *context) {
    struct leak_helpers *helpers = mark_prepare();
    tool_stop_threads();
    struct search search = {.pagemap = -1};
    struct leak_walk walk = {0};
    struct leak_block block;
    bool ok = search_all(&search, helpers, heuristics);
    while (ok && blocks_next(&search.blocks, &walk, &block)) {
        enum leak_kind kind = state_kind(search.blocks.states[block.number]);
        uint32_t record = record_of(kind, block.stack);
        if (record)
            visit(context, record, &block);
    }
    search_free(&search);
    tool_resume_threads();
    mark_release(helpers);
    return ok;
}

static void check(const struct leak_command *command, bool is_end) {
    struct leak_search result = {.full = command->mode == LEAKS_FULL,
                                 .at_end = is_end,
                                 .is_delta = command->delta != LEAKS_ALL,
                                 .by_command = command->by_command,
                                 .kinds = command->kinds,
                                 .limit = command->limit};
    unsigned by = command->heuristics < 0 ? heuristics : (unsigned)command->heuristics;
    size_t record_room = 0;
    struct leak_helpers *helpers = mark_prepare();
    tool_stop_threads();
    struct search search = {.pagemap = -1};
    struct leak_totals totals = {0};
    bool ok = search_all(&search, helpers, by) &&
              records_make(&search, command->delta, &result, &totals, &record_room);
    if (ok) {
        last = totals;
        keep_records(&result);
    }
    result.bytes_searched = search.bytes_searched;
    search_free(&search);
    tool_resume_threads();
    mark_release(helpers);
    if (ok)
        findings_send_losses(&result);
    else
        tool_say("There is not enough memory to look for leaks.");
    search_unmap(result.records, record_room);
}

void leaks_check_at_end(void) {
    struct leak_command command = {.mode = at_end == CHECK_FULL ? LEAKS_FULL : LEAKS_SUMMARY,
                                   .delta = LEAKS_ALL,
                                   .heuristics = -1};
    if (at_end != CHECK_NONE)
        check(&command, true);
}

void leaks_check(const struct leak_command *command) {
    check(command, false);
    findings_stop_at_loss();
}

struct leak_totals leaks_last(void) {
    return last;
}
