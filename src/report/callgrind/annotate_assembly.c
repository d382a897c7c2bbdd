// Instructions with their costs, the source lines they come from, calls and jumps.
#include "base/vector.h"
#include "report/callgrind/annotate_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/callgrind/disassemble.h"

enum {
    GAP_MOST = 96,      // bytes of code without costs that are shown between instructions
    LINE_MOST = 100000, // of a source file
};

// A source file, kept while lines of it are shown.
struct source {
    const char *path; // of the profile; NULL: none
    char **lines;
    size_t count;
};

enum { SOURCES = 8 };

struct listing {
    const struct annotate_view *view;
    struct disassembler *code; // NULL: there is none
    const struct cost_instruction **known;
    size_t count;
    const struct cost_jump *jumps; // of the function, by place
    size_t jump_count;
    struct source sources[SOURCES];
    unsigned next_source;
    const char *file; // of the line shown last
    uint32_t line;
};

// ---- sources -----------------------------------------------------------------------------------

static void free_source(struct source *source) {
    for (size_t i = 0; i < source->count; i++)
        free(source->lines[i]);
    free(source->lines);
    *source = (struct source){0};
}

static void read_source(const struct annotate_view *view, struct source *source) {
    FILE *file = annotate_open_source(view, source->path);
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    while (file && source->count < LINE_MOST && (size = getline(&line, &room, file)) >= 0) {
        if (size && line[size - 1] == '\n')
            line[size - 1] = 0;
        *vector_push(source->lines, source->count) = base_copy(line);
    }
    free(line);
    if (file)
        fclose(file);
}

// The text of a line; "" if it is not found.
static const char *line_of(struct listing *listing, const char *path, uint32_t line) {
    struct source *source = NULL;
    for (unsigned i = 0; i < SOURCES && !source; i++)
        if (listing->sources[i].path == path)
            source = &listing->sources[i];
    if (!source) {
        source = &listing->sources[listing->next_source++ % SOURCES];
        free_source(source);
        source->path = path;
        read_source(listing->view, source);
    }
    return line && line <= source->count ? source->lines[line - 1] : "";
}

// Where the code comes from, whenever that changes.
static void print_line(struct listing *listing, const struct cost_instruction *instruction) {
    static const uint64_t none[COST_EVENTS];
    const struct annotate_view *view = listing->view;
    if (!instruction->line ||
        (listing->file == instruction->file && listing->line == instruction->line))
        return;
    const char *slash = strrchr(instruction->file, '/');
    listing->file = instruction->file;
    listing->line = instruction->line;
    annotate_cells(view, none);
    annotate_name(view->out, slash ? slash + 1 : instruction->file);
    fprintf(view->out, ":%u  ", instruction->line);
    annotate_name(view->out, line_of(listing, instruction->file, instruction->line));
    fputc('\n', view->out);
}

// ---- jumps -------------------------------------------------------------------------------------

static int by_place(const void *left, const void *right) {
    const struct cost_jump *a = left, *b = right;
    if (a->function != b->function)
        return a->function < b->function ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}

// All jumps, those from and to the same places added up; how many are left.
static size_t sort_jumps(const struct cost_profile *profile, struct cost_jump *jumps) {
    size_t kept = 0;
    if (profile->jump_count) {
        memcpy(jumps, profile->jumps, profile->jump_count * sizeof *jumps);
        qsort(jumps, profile->jump_count, sizeof *jumps, by_place);
    }
    for (size_t i = 0; i < profile->jump_count; i++) {
        if (kept && by_place(&jumps[kept - 1], &jumps[i]) == 0) {
            jumps[kept - 1].taken += jumps[i].taken;
            jumps[kept - 1].executed += jumps[i].executed;
        } else {
            jumps[kept++] = jumps[i];
        }
    }
    return kept;
}

static void print_jumps(const struct listing *listing, uint64_t address) {
    static const uint64_t none[COST_EVENTS];
    FILE *out = listing->view->out;
    for (size_t i = 0; i < listing->jump_count; i++) {
        const struct cost_jump *jump = &listing->jumps[i];
        if (jump->from != address)
            continue;
        annotate_cells(listing->view, none);
        fprintf(out, "    %s 0x%" PRIx64 ": ", jump->to <= address ? "jumps back to" : "jumps to",
                jump->to);
        if (jump->executed)
            fprintf(out, "%" PRIu64 " of %" PRIu64 " times\n", jump->taken, jump->executed);
        else
            fprintf(out, "%" PRIu64 "x\n", jump->taken);
    }
}

// ---- instructions ------------------------------------------------------------------------------

static int by_address(const void *left, const void *right) {
    const struct cost_instruction *a = *(const struct cost_instruction *const *)left;
    const struct cost_instruction *b = *(const struct cost_instruction *const *)right;
    return a->address < b->address ? -1 : a->address > b->address;
}

static void print_instruction(const struct listing *listing, const uint64_t *values,
                              uint64_t address, const char *text) {
    annotate_cells(listing->view, values);
    fprintf(listing->view->out, "  %8" PRIx64 ":  %s\n", address, text ? text : "(no code)");
}

// What lies between two instructions with costs, unless it is much.
static void print_gap(const struct listing *listing, uint64_t from, uint64_t to) {
    static const uint64_t none[COST_EVENTS];
    char text[DISASSEMBLE_TEXT];
    if (from >= to)
        return;
    if (to - from > GAP_MOST || !listing->code) {
        annotate_cells(listing->view, none);
        fprintf(listing->view->out, "       ...  %" PRIu64 " bytes\n", to - from);
        return;
    }
    while (from < to) {
        size_t size = disassemble_at(listing->code, from, text);
        if (!size)
            return;
        print_instruction(listing, none, from, text);
        from += size;
    }
}

static void print_call(const struct listing *listing, const struct cost_instruction *instruction) {
    const struct annotate_view *view = listing->view;
    if (instruction->callee == UINT32_MAX)
        return;
    const struct cost_call call = {.caller = instruction->function,
                                   .callee = instruction->callee,
                                   .count = instruction->count};
    annotate_call(view, &call, cost_values(view->profile, instruction->inclusive), "    => ",
                  call.callee);
}

static void print_listing(struct listing *listing) {
    uint64_t end = 0;
    for (size_t i = 0; i < listing->count; i++) {
        const struct cost_instruction *instruction = listing->known[i];
        char text[DISASSEMBLE_TEXT];
        size_t size = listing->code ? disassemble_at(listing->code, instruction->address, text) : 0;
        if (i && size)
            print_gap(listing, end, instruction->address);
        print_line(listing, instruction);
        print_instruction(listing, cost_values(listing->view->profile, instruction->own),
                          instruction->address, size ? text : NULL);
        print_call(listing, instruction);
        print_jumps(listing, instruction->address);
        end = instruction->address + size;
    }
}

static void print_function(struct listing *listing, uint32_t function) {
    const struct annotate_view *view = listing->view;
    const char *object = view->profile->functions[function].object;
    listing->code = disassemble_open(object);
    listing->file = NULL;
    qsort(listing->known, listing->count, sizeof *listing->known, by_address);
    annotate_rule(view->out);
    fputs(listing->code ? "-- Assembly: " : "-- No code found: ", view->out);
    annotate_function_name(view, function);
    fputc('\n', view->out);
    annotate_rule(view->out);
    annotate_headings(view, "");
    print_listing(listing);
    fputc('\n', view->out);
    if (listing->code)
        disassemble_close(listing->code);
}

void annotate_assembly(const struct annotate_view *view) {
    const struct cost_profile *profile = view->profile;
    struct cost_jump *jumps = base_allocate((profile->jump_count + 1) * sizeof *jumps);
    size_t jump_count = sort_jumps(profile, jumps);
    struct listing listing = {.view = view};
    listing.known = base_allocate((profile->instruction_count + 1) * sizeof *listing.known);
    for (size_t i = 0; i < view->shown; i++) {
        uint32_t function = view->rows[i].function;
        listing.count = 0;
        for (size_t j = 0; j < profile->instruction_count; j++)
            if (profile->instructions[j].function == function)
                listing.known[listing.count++] = &profile->instructions[j];
        size_t first = 0, last;
        while (first < jump_count && jumps[first].function < function)
            first++;
        for (last = first; last < jump_count && jumps[last].function == function;)
            last++;
        listing.jumps = jumps + first;
        listing.jump_count = last - first;
        if (listing.count)
            print_function(&listing, function);
    }
    for (unsigned i = 0; i < SOURCES; i++)
        free_source(&listing.sources[i]);
    free(listing.known);
    free(jumps);
}
