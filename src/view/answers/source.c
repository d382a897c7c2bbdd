// Costs beside source and machine code. Objects are shown only if they are programs or libraries
// (disassemble.h), sources as source_file.h says.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "profile/costs/inclusive.h"
#include "report/callgrind/disassemble.h"
#include "view/answers/costs.h"
#include "view/answers/source_file.h"

#define LINES_MOST 6000
#define CONTEXT    6
#define TRIED      100 // functions, when none was asked for
#define GAP_MOST   96  // bytes of code without costs that are shown between instructions with costs

// ---- lines ----

struct source_line {
    uint64_t own, called;
    bool has_costs;
};

// A line in the code of several functions that call each other counts for each of them. It is never
// more than everything.
static void add_called(const struct costs *costs, struct source_line *line, uint64_t cost) {
    uint64_t total = costs->profile->totals[costs->event];
    line->called = cost < total - line->called ? line->called + cost : total;
}

static struct source_line *sum_lines(const struct costs *costs, const char *path, size_t *count) {
    const struct cost_profile *profile = costs->profile;
    *count = 1;
    for (size_t i = 0; i < profile->line_count; i++)
        if (profile->lines[i].file == path && profile->lines[i].line >= *count &&
            profile->lines[i].line < 10000000)
            *count = profile->lines[i].line + 1;
    struct source_line *lines = base_allocate(*count * sizeof *lines);
    memset(lines, 0, *count * sizeof *lines);
    for (size_t i = 0; i < profile->line_count; i++) {
        const struct cost_line *line = &profile->lines[i];
        if (line->file != path || line->line >= *count)
            continue;
        lines[line->line].own += cost_values(profile, line->own)[costs->event];
        lines[line->line].has_costs = true;
    }
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        if (call->file == path && call->line < *count) {
            add_called(costs, &lines[call->line], costs_of_call_outside(costs, call));
            lines[call->line].has_costs = true;
        }
    }
    return lines;
}

static bool is_near(const struct source_line *lines, size_t count, size_t line) {
    size_t from = line > CONTEXT ? line - CONTEXT : 1;
    for (size_t i = from; i <= line + CONTEXT && i < count; i++)
        if (lines[i].has_costs)
            return true;
    return false;
}

static void add_line(struct json *json, size_t number, const struct source_line *line,
                     const char *text) {
    json_open(json, '[');
    json_number(json, number);
    json_number(json, line->own);
    json_number(json, line->called);
    json_string(json, text);
    json_close(json, ']');
}

// With the text where the file is there, else only lines that have costs.
static void add_source(const struct costs *costs, const char *path) {
    struct json *json = costs->json;
    size_t count, shown = 0, room = 0;
    struct source_line *lines = sum_lines(costs, path, &count);
    const struct source_line none = {0};
    FILE *file = source_file_open(path);
    char *text = NULL;
    json_bool_at(json, "found", file != NULL);
    json_open_at(json, "lines", '[');
    for (size_t line = 1; shown < LINES_MOST; line++) {
        if (file ? !source_file_line(file, &text, &room) : line >= count)
            break;
        if (file ? !is_near(lines, count, line) : !lines[line].has_costs)
            continue;
        add_line(json, line, line < count ? &lines[line] : &none, file ? text : NULL);
        shown++;
    }
    json_close(json, ']');
    if (file)
        fclose(file);
    free(text);
    free(lines);
}

// [line, callee, its name, number of calls, their cost, whether they are recursion], by line as in
// the file
static void add_calls(const struct costs *costs, const char *path) {
    const struct cost_profile *profile = costs->profile;
    struct json *json = costs->json;
    size_t shown = 0;
    json_open_at(json, "calls", '[');
    for (size_t i = 0; i < profile->call_count && shown < LINES_MOST; i++) {
        const struct cost_call *call = &profile->calls[i];
        if (call->file != path || !call->line)
            continue;
        json_open(json, '[');
        json_number(json, call->line);
        json_number(json, call->callee);
        json_string(json, profile->functions[call->callee].name);
        json_number(json, call->count);
        json_number(json, costs_of_call_outside(costs, call));
        json_number(json, cost_is_within(costs->document->inclusive, call->caller, call->callee));
        json_close(json, ']');
        shown++;
    }
    json_close(json, ']');
}

// ---- instructions ----

// The text of a source file by line; lines[0] is not used.
struct lines {
    char **lines;
    size_t count;
};

static struct lines read_lines(const char *path) {
    struct lines source = {0};
    FILE *file = source_file_open(path);
    char *text = NULL;
    size_t room = 0;
    *vector_push(source.lines, source.count) = NULL;
    while (file && source_file_line(file, &text, &room))
        *vector_push(source.lines, source.count) = base_copy(text);
    if (file)
        fclose(file);
    free(text);
    return source;
}

static void free_lines(struct lines *source) {
    for (size_t i = 1; i < source->count; i++)
        free(source->lines[i]);
    free(source->lines);
}

struct listing {
    const struct costs *costs;
    struct disassembler *disassembler; // NULL: the object is not there
    struct lines source;               // of the function's file
    const struct cost_instruction **known;
    size_t count, shown;
    uint32_t function;
};

static int by_address(const void *left, const void *right) {
    const struct cost_instruction *a = *(const struct cost_instruction *const *)left;
    const struct cost_instruction *b = *(const struct cost_instruction *const *)right;
    return a->address < b->address ? -1 : a->address > b->address;
}

static void gather(struct listing *listing) {
    const struct cost_profile *profile = listing->costs->profile;
    listing->known = base_allocate((profile->instruction_count + 1) * sizeof *listing->known);
    for (size_t i = 0; i < profile->instruction_count; i++)
        if (profile->instructions[i].function == listing->function)
            listing->known[listing->count++] = &profile->instructions[i];
    if (listing->count)
        qsort(listing->known, listing->count, sizeof *listing->known, by_address);
}

static uint64_t cost_of_calls(const struct costs *costs, const struct cost_instruction *known) {
    bool is_within = known->callee != UINT32_MAX &&
                     cost_is_within(costs->document->inclusive, known->function, known->callee);
    return is_within ? 0 : cost_values(costs->profile, known->inclusive)[costs->event];
}

// [address, own, in calls, text, line, text of the line, its file if it is another than the
// function's, callee]
static void add_instruction(struct listing *listing, uint64_t address, const char *text,
                            const struct cost_instruction *known) {
    const struct costs *costs = listing->costs;
    const struct cost_profile *profile = costs->profile;
    struct json *json = costs->json;
    char number[24];
    snprintf(number, sizeof number, "%" PRIx64, address);
    json_open(json, '[');
    json_string(json, number);
    json_number(json, known ? cost_values(profile, known->own)[costs->event] : 0);
    json_number(json, known ? cost_of_calls(costs, known) : 0);
    json_string(json, text);
    json_number(json, known ? known->line : 0);
    const char *file = profile->functions[listing->function].file;
    bool is_here = known && known->file == file && known->line < listing->source.count;
    json_string(json, is_here && known->line ? listing->source.lines[known->line] : NULL);
    json_string(json, known && known->file != file ? known->file : NULL);
    json_string(json, known && known->callee != UINT32_MAX ? profile->functions[known->callee].name
                                                           : NULL);
    json_close(json, ']');
    listing->shown++;
}

// What lies between two instructions with costs, unless it is much.
static void add_between(struct listing *listing, uint64_t from, uint64_t to) {
    char text[DISASSEMBLE_TEXT];
    if (to - from > GAP_MOST)
        return;
    for (size_t size; from < to && listing->shown < LINES_MOST; from += size) {
        size = disassemble_at(listing->disassembler, from, text);
        if (!size)
            return;
        add_instruction(listing, from, text, NULL);
    }
}

static void add_instructions(struct listing *listing) {
    for (size_t i = 0; i < listing->count && listing->shown < LINES_MOST; i++) {
        char text[DISASSEMBLE_TEXT];
        uint64_t address = listing->known[i]->address;
        size_t size =
            listing->disassembler ? disassemble_at(listing->disassembler, address, text) : 0;
        add_instruction(listing, address, size ? text : NULL, listing->known[i]);
        if (size && i + 1 < listing->count)
            add_between(listing, address + size, listing->known[i + 1]->address);
    }
}

// [from, to, how often taken, how often met; 0: it is unconditional]
static void add_jumps(const struct listing *listing) {
    const struct cost_profile *profile = listing->costs->profile;
    struct json *json = listing->costs->json;
    size_t shown = 0;
    json_open_at(json, "jumps", '[');
    for (size_t i = 0; i < profile->jump_count && shown < LINES_MOST; i++) {
        const struct cost_jump *jump = &profile->jumps[i];
        if (jump->function != listing->function)
            continue;
        char from[24], to[24];
        snprintf(from, sizeof from, "%" PRIx64, jump->from);
        snprintf(to, sizeof to, "%" PRIx64, jump->to);
        json_open(json, '[');
        json_string(json, from);
        json_string(json, to);
        json_number(json, jump->taken);
        json_number(json, jump->executed);
        json_close(json, ']');
        shown++;
    }
    json_close(json, ']');
}

// ---- answers ----

// Of those that cost most by themselves the first whose source is here, so that there is something
// to see.
static uint32_t function_with_source(struct document *document, const char *metric) {
    uint32_t heaviest[TRIED];
    size_t count = answer_heaviest(document, metric, true, heaviest, TRIED);
    for (size_t i = 0; i < count; i++) {
        FILE *file = source_file_open(document->costs->functions[heaviest[i]].file);
        if (file) {
            fclose(file);
            return heaviest[i];
        }
    }
    return count ? heaviest[0] : UINT32_MAX;
}

static char *begin(struct document *document, const struct ask *ask, bool wants_source,
                   struct json *json, struct costs *costs, uint32_t *function) {
    char *problem = costs_choose(document, ask, json, costs);
    if (problem)
        return problem;
    *function = wants_source && !ask_value(ask, "function")
                    ? function_with_source(document, ask_value(ask, "metric"))
                    : costs_function_asked(costs, ask, true);
    if (*function >= costs->profile->function_count)
        return base_copy("there is no such function");
    json_open(json, '{');
    costs_tell_function(costs, *function);
    json_number_at(json, "total", costs->profile->totals[costs->event]);
    return NULL;
}

char *answer_source(struct document *document, const struct ask *ask, struct json *json) {
    struct costs costs = {0};
    uint32_t function;
    char *problem = begin(document, ask, true, json, &costs, &function);
    if (problem)
        return problem;
    const char *path = costs.profile->functions[function].file;
    json_bool_at(json, "newer", source_file_is_newer(path, document->path));
    add_source(&costs, path);
    add_calls(&costs, path);
    json_close(json, '}');
    return NULL;
}

char *answer_assembly(struct document *document, const struct ask *ask, struct json *json) {
    struct costs costs = {0};
    uint32_t function;
    if (document->costs && !document->costs->instruction_count)
        return base_copy(
            "the file tells no addresses; --dump-instr=yes makes callgrind write them");
    char *problem = begin(document, ask, false, json, &costs, &function);
    if (problem)
        return problem;
    const struct cost_function *known = &costs.profile->functions[function];
    struct listing listing = {.costs = &costs,
                              .function = function,
                              .disassembler = disassemble_open(known->object),
                              .source = read_lines(known->file)};
    gather(&listing);
    json_bool_at(json, "found", listing.disassembler != NULL);
    json_bool_at(json, "newer", source_file_is_newer(known->object, document->path));
    json_open_at(json, "lines", '[');
    add_instructions(&listing);
    json_close(json, ']');
    add_jumps(&listing);
    json_close(json, '}');
    if (listing.disassembler)
        disassemble_close(listing.disassembler);
    free_lines(&listing.source);
    free(listing.known);
    return NULL;
}
