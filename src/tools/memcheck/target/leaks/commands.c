// Commands about leaks: leak_check, block_list, who_points_at.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/memcheck/target/leaks/search.h"
#include "tools/memcheck/target/monitor.h"

// ---- leak_check --------------------------------------------------------------------------------

// False: the word is not known.
static bool take_word(const char *word, char **rest, struct leak_command *command) {
    static const struct {
        const char *word;
        enum leak_delta delta;
    } deltas[] = {{"any", LEAKS_ALL},
                  {"increased", LEAKS_INCREASED},
                  {"changed", LEAKS_CHANGED},
                  {"new", LEAKS_NEW}};
    static const unsigned definite = 1u << LEAK_DEFINITE, possible = 1u << LEAK_POSSIBLE;
    for (unsigned i = 0; i < sizeof deltas / sizeof *deltas; i++)
        if (strcmp(word, deltas[i].word) == 0) {
            command->delta = deltas[i].delta;
            return true;
        }
    if (strcmp(word, "full") == 0 || strcmp(word, "summary") == 0) {
        command->mode = *word == 'f' ? LEAKS_FULL : LEAKS_SUMMARY;
    } else if (strcmp(word, "definiteleak") == 0) {
        command->kinds = definite;
    } else if (strcmp(word, "possibleleak") == 0) {
        command->kinds = definite | possible;
    } else if (strcmp(word, "reachable") == 0) {
        command->kinds = ALL_LEAK_KINDS;
    } else if (strcmp(word, "unlimited") == 0) {
        command->limit = 0;
    } else if (strcmp(word, "limited") == 0 || strcmp(word, "kinds") == 0 ||
               strcmp(word, "heuristics") == 0) {
        const char *value = monitor_word(rest);
        if (!value)
            return false;
        if (*word == 'l')
            command->limit = strtoull(value, NULL, 0);
        else if (*word == 'k')
            command->kinds = leak_kinds_in(value);
        else
            command->heuristics = (int)leak_heuristics_in(value);
    } else {
        return false;
    }
    return true;
}

void monitor_leak_check(char *rest) {
    struct leak_command command = {.mode = LEAKS_FULL,
                                   .delta = LEAKS_INCREASED,
                                   .kinds = 1u << LEAK_DEFINITE | 1u << LEAK_POSSIBLE,
                                   .heuristics = -1,
                                   .by_command = true};
    for (char *word; (word = monitor_word(&rest));)
        if (!take_word(word, &rest, &command)) {
            tool_answer("%s does not match any of 'full summary kinds reachable possibleleak "
                        "definiteleak heuristics new increased changed any unlimited limited '\n",
                        word);
            return;
        }
    leaks_check(&command);
}

// ---- block_list --------------------------------------------------------------------------------

struct listing {
    uint32_t first, last; // numbers of records, from 1
    uint64_t left;        // blocks that may be shown
};

static bool read_listing(char *rest, struct listing *listing) {
    const char *numbers = monitor_word(&rest), *word;
    char *end = NULL;
    *listing = (struct listing){.left = UINT64_MAX};
    if (numbers)
        listing->first = listing->last = (uint32_t)strtoul(numbers, &end, 0);
    if (end && strncmp(end, "..", 2) == 0)
        listing->last = (uint32_t)strtoul(end + 2, &end, 0);
    if (!end || *end || !listing->first || listing->last < listing->first) {
        tool_answer("missing or malformed loss record number\n");
        return false;
    }
    if ((word = monitor_word(&rest)) && strcmp(word, "limited") == 0 &&
        (word = monitor_word(&rest)))
        listing->left = strtoull(word, NULL, 0);
    return true;
}

static void show_block(void *context, uint32_t record, const struct leak_block *block) {
    struct listing *listing = context;
    if (record < listing->first || record > listing->last || !listing->left)
        return;
    listing->left--;
    if (listing->first != listing->last)
        tool_answer("loss record %u: ", record);
    tool_answer("0x%lX[%lu]\n", block->start, block->size);
}

void monitor_block_list(char *rest) {
    struct listing listing;
    if (!read_listing(rest, &listing))
        return;
    size_t count = leaks_record_count();
    if (!count)
        tool_answer("no loss records; do a leak_check first\n");
    else if (listing.last > count)
        tool_answer("there are %lu loss records\n", count);
    else if (!leaks_each_block(show_block, &listing))
        tool_answer("There is not enough memory to look for leaks.\n");
}

// ---- who_points_at -----------------------------------------------------------------------------

struct question {
    uint64_t start, length;
};

static bool is_meant(const struct question *question, uint64_t value) {
    return value - question->start < question->length;
}

static void look_at_registers(const struct tool_thread *thread, void *context) {
    static const char *const names[] = {"RAX", "RCX", "RDX", "RBX", "RSP", "RBP", "RSI", "RDI",
                                        "R8",  "R9",  "R10", "R11", "R12", "R13", "R14", "R15"};
    for (unsigned i = 0; i < 16; i++)
        if (is_meant(context, thread->registers[i]))
            tool_answer("tid %d register %s pointing at 0x%lx\n", thread->id, names[i],
                        thread->registers[i]);
}

static void look_at_page(const struct question *question, uint64_t page, const uint64_t *words,
                         size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint64_t at = page + i * sizeof *words;
        if (!is_meant(question, words[i]) || !word_is_known(at))
            continue;
        tool_answer("*0x%lx points at 0x%lx\n", at, words[i]);
        findings_describe(at);
    }
}

static void look_at_mapping(const struct question *question, const struct tool_mapping *mapping) {
    enum { PAGE = 4096 };
    static uint64_t words[PAGE / sizeof(uint64_t)];
    for (uint64_t page = mapping->start; page < mapping->end; page += PAGE)
        if (tool_has_shadow(page, PAGE) && tool_read(words, page, PAGE) == 0)
            look_at_page(question, page, words, PAGE / sizeof *words);
}

void monitor_who_points_at(char *rest) {
    struct question question;
    struct tool_mapping mapping;
    if (!monitor_range(rest, &question.start, &question.length))
        return;
    if (question.length == 1)
        tool_answer("Searching for pointers to 0x%lx\n", question.start);
    else
        tool_answer("Searching for pointers pointing in %lu bytes from 0x%lx\n", question.length,
                    question.start);
    tool_stop_threads();
    for (uint64_t at = 0; tool_mapping_at(at, &mapping); at = mapping.end)
        if (mapping.prot & 2) // PROT_WRITE: pointers to blocks are written
            look_at_mapping(&question, &mapping);
    tool_each_thread(look_at_registers, &question);
    tool_resume_threads();
}
