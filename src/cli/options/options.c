// Looking options up and applying words such as --num-callers=20.
#include "cli/options/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "cli/nearest.h"
#include "cli/options/check.h"

const struct option *const *option_list(size_t *count) {
    static const struct option **list;
    static size_t listed;
    if (!list) {
        size_t room = option_core_count;
        for (size_t i = 0; i < tool_count; i++)
            for (const struct option *o = tool_table[i]->options; o && o->name; o++)
                room++;
        list = base_allocate(room * sizeof *list);
        for (size_t i = 0; i < option_core_count; i++)
            list[listed++] = &option_core[i];
        for (size_t i = 0; i < tool_count; i++)
            for (const struct option *o = tool_table[i]->options; o && o->name; o++)
                list[listed++] = o;
    }
    *count = listed;
    return list;
}

const struct option *option_find(const char *name, size_t size) {
    size_t count;
    const struct option *const *list = option_list(&count);
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]->name) == size && memcmp(list[i]->name, name, size) == 0)
            return list[i];
    return NULL;
}

const struct option *option_find_letter(char letter) {
    size_t count;
    const struct option *const *list = option_list(&count);
    for (size_t i = 0; letter && i < count; i++)
        if (list[i]->letter == letter)
            return list[i];
    return NULL;
}

const struct supervisor_tool *option_tool(const struct option *option) {
    for (size_t i = 0; i < tool_count && option->topic == TOPIC_TOOL; i++)
        for (const struct option *own = tool_table[i]->options; own && own->name; own++)
            if (own == option)
                return tool_table[i];
    return NULL;
}

bool option_serves(const struct option *option, const struct supervisor_tool *tool) {
    const struct supervisor_tool *owner = option_tool(option);
    return !owner || owner == tool ||
           (option->also && tool &&
            option_choices_contain(option->also, tool->name, strlen(tool->name)));
}

const char *option_value_text(const struct option *option) {
    if (option->value)
        return option->value;
    switch (option->type) {
    case OPTION_FLAG:
        return "";
    case OPTION_BOOL:
    case OPTION_CHOICE:
        return option->choices;
    case OPTION_SET:
        return "KIND,...";
    case OPTION_NUMBER:
        return "NUMBER";
    case OPTION_SIZE:
        return "SIZE";
    case OPTION_HEX:
        return "0xNUMBER";
    case OPTION_BYTE:
        return "HEX";
    case OPTION_DECIMAL:
        return "NUMBER.N";
    case OPTION_STRING:
    case OPTION_FILE:
        return "TEXT";
    }
    return "";
}

// ---- values ----

void options_init(struct option_values *values) {
    *values = (struct option_values){0};
    values->options = option_list(&values->count);
    values->values = base_allocate(values->count * sizeof *values->values);
}

static void free_lines(char **lines, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(lines[i]);
    free(lines);
}

void options_free(struct option_values *values) {
    for (size_t i = 0; i < values->count; i++)
        free_lines(values->values[i].items, values->values[i].count);
    free(values->values);
    free_lines(values->remarks, values->remark_count);
    free_lines(values->warnings, values->warning_count);
    *values = (struct option_values){0};
}

static void add_line(char ***lines, size_t *count, char *line) {
    *vector_push(*lines, *count) = line;
}

static void store(struct option_values *values, const struct option *option, const char *text) {
    size_t index = 0;
    while (values->options[index] != option)
        index++;
    struct option_value *value = &values->values[index];
    if (!option->repeats && option->type != OPTION_FLAG && value->count) {
        free(value->items[0]);
        value->items[0] = base_copy(text);
        return;
    }
    add_line(&value->items, &value->count, base_copy(text));
}

// ---- applying a word ----

// What a word means: the option, and its value (NULL: none was given).
struct word {
    const char *text;
    const struct option *option;
    const char *value;
};

// Puts the source of the option before the message, and frees the message.
static char *failure(const char *origin, char *message) {
    struct text out = {0};
    if (origin)
        text_format(&out, "%s: ", origin);
    text_string(&out, message);
    free(message);
    return text_take(&out);
}

// By its name or its other name.
static const struct option *find_long(const char *name, size_t size) {
    size_t count;
    const struct option *const *list = option_list(&count);
    const struct option *option = option_find(name, size);
    for (size_t i = 0; i < count && !option; i++)
        if (list[i]->alias && strlen(list[i]->alias) == size &&
            memcmp(list[i]->alias, name, size) == 0)
            option = list[i];
    return option;
}

// Options with a number in their name, such as --separate-callersN=FUNCTION. Returns the value of
// the option that takes it, to be freed, and sets *option to that one; NULL if the name is not of
// this kind. Sets *error to a message if the number is out of range.
static char *numbered_value(const char *name, size_t size, const struct option **option,
                            char **error) {
    size_t count;
    const struct option *const *list = option_list(&count);
    for (size_t i = 0; i < count; i++) {
        const char *plain = list[i]->numbered;
        size_t length = plain ? strlen(plain) : 0;
        if (!plain || size <= length || memcmp(name, plain, length) != 0 ||
            strspn(name + length, "0123456789") != size - length || name[size] != '=')
            continue;
        struct text number = {0}, value = {0};
        text_add(&number, name + length, size - length);
        *error = option_check(option_find(plain, length), number.bytes);
        text_format(&value, "%s,%s", number.bytes, name + size + 1);
        text_free(&number);
        *option = list[i];
        return text_take(&value);
    }
    return NULL;
}

static char *unknown(const struct word *word, const char *name, size_t size, const char *origin) {
    struct text message = {0};
    text_format(&message, "unknown option '%s'", word->text);
    struct nearest near = nearest_to(name, size);
    size_t count;
    const struct option *const *list = option_list(&count);
    for (size_t i = 0; i < count; i++)
        nearest_offer(&near, list[i]->name);
    if (near.found)
        text_format(&message, " (did you mean --%s?)", near.found);
    text_string(&message, "; quern --help lists all");
    return failure(origin, text_take(&message));
}

// Why an option changes nothing in a run of this tool; NULL: it may.
static const char *why_no_effect(const struct option *option, const struct supervisor_tool *tool,
                                 const char *value) {
    if (option->state == OPTION_NO_EFFECT)
        return option->why;
    bool is_default = option->initial && strcmp(value, option->initial) == 0;
    bool takes = tool->finds_errors ||
                 option_choices_contain(tool->takes, option->name, strlen(option->name));
    return option->topic == TOPIC_ERRORS && !is_default && !takes ? "this tool finds no errors"
                                                                  : NULL;
}

// Whether the user must be warned: a file that the option asks for will not be written.
static bool is_missed(const struct option *option, const char *value) {
    return strcmp(option->name, "xml") == 0 && strcmp(value, "yes") == 0;
}

static char *refuse(const struct word *word, const char *origin) {
    struct text message = {0};
    text_format(&message, "%s is an option of tool '%s'", word->text,
                option_tool(word->option)->name);
    return failure(origin, text_take(&message));
}

static void remark(struct option_values *values, bool always, const char *origin,
                   const struct word *word, const char *why) {
    struct text line = {0};
    if (origin)
        text_format(&line, "%s: ", origin);
    text_format(&line, "%s %s", word->text, why);
    if (always)
        add_line(&values->warnings, &values->warning_count, text_take(&line));
    else
        add_line(&values->remarks, &values->remark_count, text_take(&line));
}

static char *apply_known(struct option_values *values, const struct supervisor_tool *tool,
                         const struct word *word, enum option_source source, const char *origin) {
    const struct option *option = word->option;
    if (option->type == OPTION_FLAG && word->value)
        return failure(origin, option_excess_value(option));
    if (option->type != OPTION_FLAG && !word->value)
        return failure(origin, option_lacks_value(option));
    bool other = !option_serves(option, tool);
    if (other && source != SOURCE_COMMAND_LINE) {
        remark(values, false, origin, word, "is ignored: it belongs to another tool");
        return NULL;
    }
    if (other)
        return refuse(word, origin);
    const char *value = word->value ? word->value : "";
    char *error = option_check(option, value);
    if (error)
        return failure(origin, error);
    const char *why = why_no_effect(option, tool, value);
    if (why) {
        struct text text = {0};
        text_format(&text, "has no effect: %s", why);
        remark(values, is_missed(option, value), origin, word, text.bytes);
        text_free(&text);
    }
    store(values, option, value);
    return NULL;
}

char *options_apply(struct option_values *values, const struct supervisor_tool *tool,
                    const char *text, enum option_source source, const char *origin) {
    struct word word = {.text = text};
    if (text[0] == '-' && text[1] && text[1] != '-') {
        word.option = text[2] ? NULL : option_find_letter(text[1]);
        if (!word.option && source != SOURCE_VALGRIND)
            return unknown(&word, text + 1, strlen(text + 1), origin);
    }
    const char *name = text + (text[0] == '-') + (text[0] == '-' && text[1] == '-');
    size_t size = strcspn(name, "=");
    if (!word.option) {
        // --TOOL:option is for that tool only.
        const char *colon = memchr(name, ':', size);
        if (colon) {
            if (!tool || strlen(tool->name) != (size_t)(colon - name) ||
                memcmp(tool->name, name, (size_t)(colon - name)) != 0)
                return NULL;
            size -= (size_t)(colon + 1 - name);
            name = colon + 1;
        }
        word.option = text[0] == '-' ? find_long(name, size) : NULL;
        word.value = name[size] == '=' ? name + size + 1 : NULL;
    }
    char *error = NULL;
    char *numbered = word.option ? NULL : numbered_value(name, size, &word.option, &error);
    if (error) {
        free(numbered);
        return failure(origin, error);
    }
    if (numbered)
        word.value = numbered;
    if (word.option && word.value && word.option->zero &&
        strcmp(word.value, word.option->zero) == 0)
        word.value = "0";
    if (word.option) {
        char *failed = apply_known(values, tool, &word, source, origin);
        free(numbered);
        return failed;
    }
    if (source != SOURCE_VALGRIND)
        return unknown(&word, name, size, origin);
    remark(values, true, origin, &word, "is ignored: it is unknown");
    return NULL;
}
