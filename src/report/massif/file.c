#include "report/massif/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"

// Sums of three of these stay below 2^64.
#define NUMBER_MAX (1ull << 62)

struct parser {
    FILE *in;
    struct massif_file *file;
    size_t number; // of the line in hand
    char *line;    // NULL: the end
    size_t room;
    struct text problem;
};

static bool is_blank(const char *line) {
    return line[strspn(line, " \t\r")] == 0;
}

static void next_line(struct parser *parser) {
    ssize_t size;
    do {
        size = getline(&parser->line, &parser->room, parser->in);
        parser->number++;
        if (size > 0 && parser->line[size - 1] == '\n')
            parser->line[--size] = 0;
    } while (size >= 0 && (parser->line[0] == '#' || is_blank(parser->line)));
    if (size < 0) {
        free(parser->line);
        parser->line = NULL;
        parser->room = 0;
    }
}

static bool fail(struct parser *parser, const char *expected) {
    if (!parser->problem.size) {
        text_format(&parser->problem, "line %zu: expected %s, got ", parser->number, expected);
        if (parser->line)
            text_format(&parser->problem, "'%.60s'", parser->line);
        else
            text_string(&parser->problem, "the end of the file");
    }
    return false;
}

// What follows `name` in the line in hand; NULL when it begins with something else.
static const char *after(const struct parser *parser, const char *name) {
    size_t size = strlen(name);
    return parser->line && strncmp(parser->line, name, size) == 0 ? parser->line + size : NULL;
}

static bool parse_number(const char **text, uint64_t *number) {
    const char *start = *text;
    for (*number = 0; **text >= '0' && **text <= '9' && *number < NUMBER_MAX / 10; (*text)++)
        *number = *number * 10 + (uint64_t)(**text - '0');
    return *text > start && !(**text >= '0' && **text <= '9');
}

static bool take_field(struct parser *parser, const char *name, uint64_t *number) {
    const char *text = after(parser, name);
    if (!text || !parse_number(&text, number) || !is_blank(text))
        return fail(parser, name);
    next_line(parser);
    return true;
}

static char *trimmed(const char *text) {
    return base_copy(text + strspn(text, " \t"));
}

// ---- parts of the file ----

static bool take_head(struct parser *parser) {
    struct massif_file *file = parser->file;
    struct text description = {0};
    for (const char *text; (text = after(parser, "desc:")); next_line(parser)) {
        if (description.size)
            text_char(&description, '\n');
        text_string(&description, text + strspn(text, " "));
    }
    file->description = text_take(&description);
    if (!after(parser, "cmd:"))
        return fail(parser, "cmd:");
    file->command = trimmed(after(parser, "cmd:"));
    next_line(parser);
    if (!after(parser, "time_unit:"))
        return fail(parser, "time_unit:");
    file->time_unit = trimmed(after(parser, "time_unit:"));
    if (strcmp(file->time_unit, "i") != 0 && strcmp(file->time_unit, "ms") != 0 &&
        strcmp(file->time_unit, "B") != 0)
        return fail(parser, "a time unit of i, ms or B");
    next_line(parser);
    return true;
}

static bool take_node(struct parser *parser, int depth) {
    struct massif_file *file = parser->file;
    struct massif_file_node node;
    uint64_t children;
    const char *text = parser->line;
    if (!text || depth > MASSIF_FILE_DEPTH)
        return fail(parser, "a node of a tree, not too deep");
    text += strspn(text, " ");
    if (*text++ != 'n' || !parse_number(&text, &children) || *text++ != ':')
        return fail(parser, "a node of a tree");
    text += strspn(text, " ");
    if (!parse_number(&text, &node.bytes))
        return fail(parser, "a number of bytes");
    node.children = (size_t)children;
    node.text = base_copy(text);
    *vector_push(file->nodes, file->node_count) = node;
    next_line(parser);
    for (uint64_t i = 0; i < children; i++)
        if (!take_node(parser, depth + 1))
            return false;
    return true;
}

static bool take_snapshot(struct parser *parser) {
    struct massif_file *file = parser->file;
    struct massif_file_snapshot snapshot = {.first_node = file->node_count};
    if (!take_field(parser, "snapshot=", &snapshot.number) ||
        !take_field(parser, "time=", &snapshot.time) ||
        !take_field(parser, "mem_heap_B=", &snapshot.heap) ||
        !take_field(parser, "mem_heap_extra_B=", &snapshot.extra) ||
        !take_field(parser, "mem_stacks_B=", &snapshot.stacks))
        return false;
    const char *kind = after(parser, "heap_tree=");
    static const char *const kinds[] = {"empty", "detailed", "peak"};
    size_t i = 0;
    while (kind && i < 3 && strcmp(kind, kinds[i]) != 0)
        i++;
    if (!kind || i == 3)
        return fail(parser, "heap_tree=empty, detailed or peak");
    snapshot.kind = (enum massif_file_kind)i;
    if (file->snapshot_count && snapshot.time < file->snapshots[file->snapshot_count - 1].time)
        return fail(parser, "a snapshot that is later than the one before");
    next_line(parser);
    *vector_push(file->snapshots, file->snapshot_count) = snapshot;
    return snapshot.kind == MASSIF_FILE_EMPTY || take_node(parser, 0);
}

bool massif_file_is_one(const char *start, size_t size) {
    return size >= 5 && (memcmp(start, "desc:", 5) == 0 || memcmp(start, "cmd: ", 5) == 0);
}

char *massif_file_read(FILE *in, struct massif_file *file) {
    struct parser parser = {.in = in, .file = file};
    *file = (struct massif_file){0};
    next_line(&parser);
    bool good = take_head(&parser);
    if (good && !parser.line)
        good = fail(&parser, "a snapshot");
    while (good && parser.line)
        good = take_snapshot(&parser);
    free(parser.line);
    return good ? NULL : text_take(&parser.problem);
}

void massif_file_free(struct massif_file *file) {
    for (size_t i = 0; i < file->node_count; i++)
        free(file->nodes[i].text);
    free(file->nodes);
    free(file->snapshots);
    free(file->description);
    free(file->command);
    free(file->time_unit);
}
