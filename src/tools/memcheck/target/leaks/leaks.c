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
static bool search_all(struct search *search, struct leak_helpers *helpers) {
    search->heuristics = heuristics;
    search->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    return blocks_collect(&search->blocks) && search_find_memory(search) &&
           mark_all(search, helpers) && lost_cliques(search);
}

static void check(bool full, bool is_end, enum leak_delta delta) {
    struct leak_search result = {.full = full, .at_end = is_end, .is_delta = delta != LEAKS_ALL};
    size_t record_room = 0;
    struct leak_helpers *helpers = mark_prepare();
    tool_stop_threads();
    struct search search = {.pagemap = -1};
    struct leak_totals totals = {0};
    bool ok = search_all(&search, helpers) &&
              records_make(&search, delta, &result, &totals, &record_room);
    if (ok)
        last = totals;
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
    if (at_end != CHECK_NONE)
        check(at_end == CHECK_FULL, true, LEAKS_ALL);
}

void leaks_check(enum leak_mode mode, enum leak_delta delta) {
    check(mode == LEAKS_FULL, false, delta);
}

struct leak_totals leaks_last(void) {
    return last;
}
