// Costs beside source and machine code.
//
// Source files are those the profile names, and only if they are called as sources are; objects
// only if they are programs or libraries (disassemble.h): a profile from elsewhere must not show a
// private key.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vector.h"
#include "report/callgrind/disassemble.h"
#include "view/answers/costs.h"

#define LINES_MOST  6000
#define CONTEXT     6
#define SOURCE_MOST (16 << 20)
#define TRIED       100 // functions, when none was asked for
#define GAP_MOST    96 // bytes of code without costs that are shown between instructions with costs

// Whether a file has been changed since the profile was written, so that its lines or instructions
// may be others.
static bool is_newer(const struct costs *costs, const char *path) {
    struct stat file, profile;
    return stat(path, &file) == 0 && stat(costs->document->path, &profile) == 0 &&
           file.st_mtime > profile.st_mtime;
}

// ---- lines ----

struct source_line {
    uint64_t own, called;
    bool has_costs;
};

static bool is_source_name(const char *path) {
    static const char *const endings[] = {
        "c",   "h",   "cc", "hh", "cpp", "hpp",   "cxx", "hxx", "c++", "h++", "tcc", "ipp", "inl",
        "inc", "def", "s",  "S",  "asm", "rs",    "go",  "f",   "f90", "F",   "F90", "d",   "zig",
        "y",   "l",   "m",  "mm", "nim", "swift", "adb", "ads", "pas", "ml",  "hs",  "cu",  "C",
    };
    const char *dot = strrchr(heap_file_base(path), '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot + 1, endings[i]) == 0)
            return true;
    return false;
}

static FILE *open_source(const char *path) {
    struct stat status;
    if (!is_source_name(path))
        return NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    FILE *file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= SOURCE_MOST
                     ? fdopen(fd, "r")
                     : NULL;
    if (!file)
        close(fd);
    return file;
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
            lines[call->line].called += costs_of_call(costs, call);
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

static void add_line(struct json *json, size_t number, const struct source_line *line, char *text) {
    json_open(json, '[');
    json_number(json, number);
    json_number(json, line->own);
    json_number(json, line->called);
    for (char *at = text; at && *at; at++)
        *at = *at == '\t' ? ' ' : *at;
    json_string(json, text);
    json_close(json, ']');
}

// With the text where the file is there, else only lines that have costs.
static void add_source(const struct costs *costs, const char *path) {
    struct json *json = costs->json;
    size_t count, shown = 0, room = 0;
    struct source_line *lines = sum_lines(costs, path, &count);
    const struct source_line none = {0};
    FILE *file = open_source(path);
    char *text = NULL;
    json_bool_at(json, "found", file != NULL);
    json_name(json, "lines");
    json_open(json, '[');
    ssize_t size = 0;
    for (size_t line = 1; shown < LINES_MOST; line++) {
        if (file ? (size = getline(&text, &room, file)) < 0 : line >= count)
            break;
        while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
            text[--size] = 0;
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

// ---- instructions ----

// The text of a source file by line; lines[0] is not used.
struct lines {
    char **lines;
    size_t count;
};

static struct lines read_lines(const char *path) {
    struct lines source = {0};
    FILE *file = open_source(path);
    char *text = NULL;
    size_t room = 0;
    ssize_t size;
    *vector_push(source.lines, source.count) = NULL;
    while (file && (size = getline(&text, &room, file)) >= 0) {
        while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
            text[--size] = 0;
        *vector_push(source.lines, source.count) = base_copy(text);
    }
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
    json_number(json, known ? cost_values(profile, known->inclusive)[costs->event] : 0);
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

// ---- answers ----

// Of those that cost most by themselves the first whose source is here, so that there is something
// to see.
static uint32_t function_with_source(struct document *document, const char *metric) {
    uint32_t heaviest[TRIED];
    size_t count = answer_heaviest(document, metric, true, heaviest, TRIED);
    for (size_t i = 0; i < count; i++) {
        FILE *file = open_source(document->costs->functions[heaviest[i]].file);
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
    json_bool_at(json, "newer", is_newer(&costs, path));
    add_source(&costs, path);
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
    json_bool_at(json, "newer", is_newer(&costs, known->object));
    json_name(json, "lines");
    json_open(json, '[');
    add_instructions(&listing);
    json_close(json, ']');
    json_close(json, '}');
    if (listing.disassembler)
        disassemble_close(listing.disassembler);
    free_lines(&listing.source);
    free(listing.known);
    return NULL;
}
