#include "report/flame/stack_file.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/flame/folded.h"
#include "report/shared/stack_text.h"

#define FIRST_LINE "# quern stacks: \"1\""
#define DEPTH_MAX  20000

// ---- writing -----------------------------------------------------------------------------------

// A name, with what has a meaning in a line as \xNN.
static void add_escaped(struct text *line, const char *name, const char *special) {
    for (const unsigned char *at = (const unsigned char *)name; *at;) {
        size_t size = stack_text_printable(at);
        if (size > 1 || (size && *at != '\\' && !strchr(special, *at))) {
            for (; size; size--)
                text_char(line, (char)*at++);
        } else {
            text_format(line, "\\x%02X", *at++);
        }
    }
}

static void add_frame(struct text *line, const struct calltree_function *function) {
    if (*function->group) {
        add_escaped(line, function->group, ";`#");
        text_char(line, '`');
    }
    add_escaped(line, function->name, ";`#");
}

// In quotes, so that no line of the head ends in a number: other readers of stacks skip them.
static void write_fact(FILE *out, const char *name, const char *value) {
    struct text text = {0};
    if (!value)
        return;
    add_escaped(&text, value, "\"");
    fprintf(out, "# %s: \"%s\"\n", name, text.bytes ? text.bytes : "");
    text_free(&text);
}

void stack_file_write(FILE *out, const struct calltree *tree, const struct stack_info *info) {
    fputs(FIRST_LINE "\n", out);
    write_fact(out, "command", info->command);
    write_fact(out, "unit", info->unit);
    write_fact(out, "details", info->details);
    if (info->frequency)
        fprintf(out, "# frequency: \"%" PRIu64 "\"\n", info->frequency);
    folded_write_as(out, tree, add_frame);
}

// ---- reading -----------------------------------------------------------------------------------

// Where the space is before the number that ends a line; NULL: there is none.
static char *value_in(char *line, size_t size) {
    char *end = line + size;
    char *at = end;
    while (at > line && isdigit((unsigned char)at[-1]))
        at--;
    return at < end && end - at < 20 && at > line + 1 && at[-1] == ' ' ? at - 1 : NULL;
}

bool stack_file_is_one(const char *start, size_t size) {
    const char *end = memchr(start, '\n', size);
    size_t length = end ? (size_t)(end - start) : size;
    if (!length || memchr(start, 0, size))
        return false;
    if (length == strlen(FIRST_LINE) && memcmp(start, FIRST_LINE, length) == 0)
        return true;
    char *line = base_allocate(length + 1);
    memcpy(line, start, length);
    line[length] = 0;
    bool is_one = value_in(line, length) != NULL;
    free(line);
    return is_one;
}

// Turns \xNN back into bytes, in place; no byte becomes 0.
static void unescape(char *text) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        unsigned byte = 0;
        if (at[0] == '\\' && at[1] == 'x' && isxdigit((unsigned char)at[2]) &&
            isxdigit((unsigned char)at[3]) && sscanf(at + 2, "%2x", &byte) == 1 && byte) {
            *to++ = (char)byte;
            at += 3;
        } else {
            *to++ = *at;
        }
    }
    *to = 0;
}

static uint32_t function_of(struct calltree *tree, char *frame, bool is_profile) {
    char *tick = is_profile ? strchr(frame, '`') : NULL;
    if (!is_profile)
        return calltree_function(tree, frame, "");
    if (tick)
        *tick = 0;
    char *name = tick ? tick + 1 : frame;
    unescape(name);
    if (tick)
        unescape(frame);
    return calltree_function(tree, name, tick ? frame : "");
}

static bool read_stack(struct calltree *tree, char *line, size_t size, uint32_t *path,
                       bool is_profile) {
    char *value = value_in(line, size);
    if (!value)
        return false;
    *value = 0;
    size_t depth = 0;
    char *rest = NULL;
    for (char *frame = strtok_r(line, ";", &rest); frame && depth < DEPTH_MAX;
         frame = strtok_r(NULL, ";", &rest))
        path[depth++] = function_of(tree, frame, is_profile);
    calltree_add(tree, path, depth, strtoull(value + 1, NULL, 10));
    return true;
}

// "# name: "value"": what is not known is left to later versions.
static void read_fact(struct stack_info *info, const char *line) {
    const char *start = strstr(line, ": \"");
    const char *end = strrchr(line, '"');
    if (!start || end <= start + 2)
        return;
    struct text value = {0};
    text_format(&value, "%.*s", (int)(end - start - 3), start + 3);
    char *text = text_take(&value);
    unescape(text);
    const struct {
        const char *name;
        char **to;
    } facts[] = {{"# command: ", &info->command},
                 {"# unit: ", &info->unit},
                 {"# details: ", &info->details}};
    if (strncmp(line, "# frequency: ", 13) == 0)
        info->frequency = strtoull(text, NULL, 10);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        if (!*facts[i].to && strncmp(line, facts[i].name, strlen(facts[i].name)) == 0) {
            *facts[i].to = text;
            return;
        }
    }
    free(text);
}

char *stack_file_read(FILE *in, struct calltree *tree, struct stack_info *info) {
    uint32_t *path = base_allocate(DEPTH_MAX * sizeof *path);
    char *line = NULL;
    size_t room = 0;
    uint64_t number = 0;
    bool is_profile = false, in_head = false;
    struct text problem = {0};
    *info = (struct stack_info){0};
    for (ssize_t size; !problem.size && (size = getline(&line, &room, in)) > 0;) {
        number++;
        while (size && (line[size - 1] == '\n' || line[size - 1] == '\r'))
            line[--size] = 0;
        if (number == 1)
            is_profile = in_head = strcmp(line, FIRST_LINE) == 0;
        in_head &= *line == '#';
        if (in_head)
            read_fact(info, line);
        else if (size && !read_stack(tree, line, (size_t)size, path, is_profile))
            text_format(&problem, "line %llu is not folded stacks: no number at its end",
                        (unsigned long long)number);
    }
    if (!problem.size && ferror(in))
        text_string(&problem, strerror(errno));
    free(line);
    free(path);
    return problem.size ? text_take(&problem) : NULL;
}

void stack_file_free(struct stack_info *info) {
    free(info->command);
    free(info->unit);
    free(info->details);
    *info = (struct stack_info){0};
}
