// Looking options up and applying words such as --num-callers=20.
#include "cli/options/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/template.h"
#include "base/text.h"
#include "cli/nearest.h"

const struct tool *tool_find(const char *name) {
    for (size_t i = 0; i < tool_count; i++)
        if (strcmp(tool_table[i].name, name) == 0)
            return &tool_table[i];
    return NULL;
}

const struct option *option_find(const char *name, size_t size) {
    for (size_t i = 0; i < option_count; i++)
        if (strlen(option_table[i].name) == size && memcmp(option_table[i].name, name, size) == 0)
            return &option_table[i];
    return NULL;
}

const struct option *option_find_letter(char letter) {
    for (size_t i = 0; letter && i < option_count; i++)
        if (option_table[i].letter == letter)
            return &option_table[i];
    return NULL;
}

const struct tool *option_tool(const struct option *option) {
    for (size_t i = 0; i < tool_count; i++)
        if (tool_table[i].topic == option->topic)
            return &tool_table[i];
    return NULL;
}

// Whether `word` (of `size` characters) is one of the words between bars.
static bool among(const char *choices, const char *word, size_t size) {
    while (choices && *choices) {
        const char *end = strchrnul(choices, '|');
        if ((size_t)(end - choices) == size && memcmp(choices, word, size) == 0)
            return true;
        choices = *end ? end + 1 : end;
    }
    return false;
}

bool option_serves(const struct option *option, const struct tool *tool) {
    const struct tool *owner = option_tool(option);
    return !owner || owner == tool ||
           (option->also && tool && among(option->also, tool->name, strlen(tool->name)));
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
    values->values = base_allocate(option_count * sizeof *values->values);
}

static void free_lines(char **lines, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(lines[i]);
    free(lines);
}

void options_free(struct option_values *values) {
    for (size_t i = 0; i < option_count; i++)
        free_lines(values->values[i].items, values->values[i].count);
    free(values->values);
    free_lines(values->remarks, values->remark_count);
    free_lines(values->warnings, values->warning_count);
    *values = (struct option_values){0};
}

static void add_line(char ***lines, size_t *count, char *line) {
    *lines = base_reallocate(*lines, (*count + 1) * sizeof **lines);
    (*lines)[(*count)++] = line;
}

static void store(struct option_values *values, const struct option *option, const char *text) {
    struct option_value *value = &values->values[option - option_table];
    if (!option->repeats && option->type != OPTION_FLAG && value->count) {
        free(value->items[0]);
        value->items[0] = base_copy(text);
        return;
    }
    add_line(&value->items, &value->count, base_copy(text));
}

static const struct option_value *value_of(const struct option_values *values, const char *name,
                                           const struct option **option) {
    *option = option_find(name, strlen(name));
    assert(*option);
    return &values->values[*option - option_table];
}

const char *option_text(const struct option_values *values, const char *name) {
    const struct option *option;
    const struct option_value *value = value_of(values, name, &option);
    return value->count ? value->items[value->count - 1] : option->initial;
}

bool option_yes(const struct option_values *values, const char *name) {
    const char *text = option_text(values, name);
    return text && strcmp(text, "yes") == 0;
}

long option_number(const struct option_values *values, const char *name) {
    const char *text = option_text(values, name);
    return text ? strtol(text, NULL, 0) : 0;
}

bool option_parse_size(const char *text, bool is_rate, unsigned long long *bytes) {
    static const char letters[] = "KMG";
    char *end;
    errno = 0;
    *bytes = strtoull(text, &end, 10);
    const char *letter = *end ? strchr(letters, toupper((unsigned char)*end)) : NULL;
    unsigned shift = letter ? 10 * (unsigned)(letter - letters + 1) : 0;
    bool fits = errno == 0 && *bytes <= (unsigned long long)LLONG_MAX >> shift;
    *bytes <<= fits ? shift : 0;
    const char *rest = letter ? end + 1 : end;
    return isdigit((unsigned char)*text) && fits &&
           (*rest == 0 || (is_rate && strcmp(rest, "/min") == 0));
}

static bool is_rate(const struct option *option) {
    return option->value && strstr(option->value, "/min");
}

unsigned long long option_bytes(const struct option_values *values, const char *name) {
    unsigned long long bytes = 0;
    const char *text = option_text(values, name);
    return text && option_parse_size(text, true, &bytes) ? bytes : 0;
}

const struct option_value *option_items(const struct option_values *values, const char *name) {
    const struct option *option;
    return value_of(values, name, &option);
}

size_t option_times(const struct option_values *values, const char *name) {
    const struct option *option;
    return value_of(values, name, &option)->count;
}

bool option_given(const struct option_values *values, const char *name) {
    return option_times(values, name) > 0;
}

// ---- checking ----

// "no, yes or full" from "no|yes|full".
static void add_choices(struct text *out, const char *choices) {
    while (*choices) {
        const char *end = strchrnul(choices, '|');
        text_add(out, choices, (size_t)(end - choices));
        if (*end)
            text_string(out, strchr(end + 1, '|') ? ", " : " or ");
        choices = *end ? end + 1 : end;
    }
}

static void check_number(const struct option *option, const char *text, struct text *reason) {
    char *end;
    errno = 0;
    bool hex = option->type == OPTION_HEX;
    long number = strtol(text, &end, hex ? 0 : 10);
    if (!isdigit((unsigned char)text[*text == '-']) || *end)
        text_format(reason, "'%s' is not %s", text, hex ? "a number such as 0x1f" : "a number");
    else if (errno == ERANGE || number < option->least || number > option->most) {
        if (option->most == LONG_MAX)
            text_format(reason, "%s is out of range; the least is %ld", text, option->least);
        else
            text_format(reason, "%s is out of range; give a number from %ld to %ld", text,
                        option->least, option->most);
    }
}

static void check_size(const struct option *option, const char *text, struct text *reason) {
    unsigned long long bytes;
    if (!option_parse_size(text, is_rate(option), &bytes))
        text_format(reason, "'%s' is not a size such as 65536, 100M or 2G", text);
    else if (bytes && bytes < (unsigned long long)option->least)
        text_format(reason, "%s is too little; the least is %ld", text, option->least);
}

static void check_byte(const char *text, struct text *reason) {
    char *end;
    unsigned long number = strtoul(text, &end, 16);
    if (!isxdigit((unsigned char)*text) || *end || number > 255)
        text_format(reason, "'%s' is not a byte in hexadecimal, such as 0xa5", text);
}

static void check_decimal(const struct option *option, const char *text, struct text *reason) {
    char *end;
    double number = strtod(text, &end);
    if (!isdigit((unsigned char)*text) || *end)
        text_format(reason, "'%s' is not a number", text);
    else if (!(number >= (double)option->least && number <= (double)option->most))
        text_format(reason, "%s is out of range; give a number from %ld to %ld", text,
                    option->least, option->most);
}

static void check_set(const struct option *option, const char *text, struct text *reason) {
    do {
        const char *end = strchrnul(text, ',');
        if (!among(option->choices, text, (size_t)(end - text))) {
            text_format(reason, "'%.*s' is not one of ", (int)(end - text), text);
            add_choices(reason, option->choices);
            return;
        }
        text = *end ? end + 1 : end;
    } while (*text);
}

// Leaves a reason when the value is not of the option's type.
static void check_value(const struct option *option, const char *text, struct text *reason) {
    char *error = NULL;
    switch (option->type) {
    case OPTION_BOOL:
    case OPTION_CHOICE:
        if (!among(option->choices, text, strlen(text))) {
            text_format(reason, "'%s' is not possible; give ", text);
            add_choices(reason, option->choices);
        }
        break;
    case OPTION_NUMBER:
    case OPTION_HEX:
        check_number(option, text, reason);
        break;
    case OPTION_SIZE:
        check_size(option, text, reason);
        break;
    case OPTION_BYTE:
        check_byte(text, reason);
        break;
    case OPTION_DECIMAL:
        check_decimal(option, text, reason);
        break;
    case OPTION_SET:
        check_set(option, text, reason);
        break;
    case OPTION_FILE:
        free(template_expand(text, 1, 1, &error));
        if (error)
            text_string(reason, error);
        free(error);
        break;
    case OPTION_FLAG:
    case OPTION_STRING:
        break;
    }
}

// ---- applying a word ----

// What a word means: the option, and its value (NULL: none was given).
struct word {
    const char *text;
    const struct option *option;
    const char *value;
};

static char *failure(const char *origin, struct text *message) {
    struct text out = {0};
    if (origin)
        text_format(&out, "%s: ", origin);
    text_string(&out, message->bytes);
    text_free(message);
    return text_take(&out);
}

// Options that stand in the table in another form.
static const struct option *find_long(const char *name, size_t size) {
    const struct option *option = option_find(name, size);
    if (!option && size == 14 && memcmp(name, "simulate-cache", 14) == 0)
        option = option_find("cache-sim", 9);
    return option;
}

// --separate-callersN=FUNCTION and its like: a number in the name. The form that stands in the
// table, and its value, to be freed; NULL: it is none of these. Leaves a reason when the number is
// out of range.
static char *numbered_value(const char *name, size_t size, const struct option **option,
                            struct text *reason) {
    static const struct {
        const char *plain, *listed;
    } forms[] = {{"separate-callers", "separate-callers-of"},
                 {"separate-recs", "separate-recs-of"},
                 {"fn-group", "fn-group-of"}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t length = strlen(forms[i].plain);
        if (size <= length || memcmp(name, forms[i].plain, length) != 0 ||
            strspn(name + length, "0123456789") != size - length || name[size] != '=')
            continue;
        struct text number = {0}, value = {0};
        text_add(&number, name + length, size - length);
        check_number(option_find(forms[i].plain, length), number.bytes, reason);
        text_format(&value, "%s,%s", number.bytes, name + size + 1);
        text_free(&number);
        *option = option_find(forms[i].listed, strlen(forms[i].listed));
        return text_take(&value);
    }
    return NULL;
}

static char *unknown(const struct word *word, const char *name, size_t size, const char *origin) {
    struct text message = {0};
    text_format(&message, "unknown option: %s", word->text);
    struct nearest near = nearest_to(name, size);
    for (size_t i = 0; i < option_count; i++)
        nearest_offer(&near, option_table[i].name);
    if (near.found)
        text_format(&message, " (did you mean --%s?)", near.found);
    text_string(&message, "; quern --help lists all");
    return failure(origin, &message);
}

// Why an option changes nothing in a run of this tool; NULL: it may.
static const char *why_no_effect(const struct option *option, const struct tool *tool,
                                 const char *value) {
    if (option->state == OPTION_NO_EFFECT)
        return option->why;
    bool is_default = option->initial && strcmp(value, option->initial) == 0;
    bool takes = option->also && strstr(option->also, tool->name);
    return option->topic == TOPIC_ERRORS && tool->topic != TOPIC_MEMCHECK && !is_default && !takes
               ? "this tool finds no errors"
               : NULL;
}

// Whether somebody may wait for what does not happen: a file that is not written.
static bool is_missed(const struct option *option, const char *value) {
    return strcmp(option->name, "xml") == 0 && strcmp(value, "yes") == 0;
}

static char *refuse(const struct word *word, const struct tool *tool, const char *origin) {
    struct text message = {0};
    const struct tool *owner = option_tool(word->option);
    if (!option_serves(word->option, tool))
        text_format(&message, "%s is an option of tool '%s'%s", word->text, owner->name,
                    owner->works ? "" : ", which is not supported yet");
    else
        text_format(&message, "%s is not supported yet; leave it out", word->text);
    return failure(origin, &message);
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

static char *apply_known(struct option_values *values, const struct tool *tool,
                         const struct word *word, enum option_source source, const char *origin) {
    const struct option *option = word->option;
    struct text reason = {0};
    if (option->type == OPTION_FLAG && word->value)
        text_format(&reason, "%s: this option takes no value", word->text);
    else if (option->type != OPTION_FLAG && !word->value)
        text_format(&reason, "%s needs a value: --%s=%s", word->text, option->name,
                    option_value_text(option));
    if (reason.size)
        return failure(origin, &reason);
    const struct tool *owner = option_tool(option);
    bool other = !option_serves(option, tool);
    if (other && source != SOURCE_COMMAND_LINE) {
        remark(values, false, origin, word, "is for another tool and is passed over");
        return NULL;
    }
    if (other && owner->works)
        return refuse(word, tool, origin);
    const char *value = word->value ? word->value : "";
    check_value(option, value, &reason);
    if (reason.size) {
        struct text message = {0};
        text_format(&message, "bad option: %s: %s", word->text, reason.bytes);
        text_free(&reason);
        return failure(origin, &message);
    }
    if (option->state == OPTION_NOT_YET && !among(option->fine, value, strlen(value))) {
        if (source != SOURCE_VALGRIND)
            return refuse(word, tool, origin);
        remark(values, true, origin, word, "is not supported yet and is passed over");
        return NULL;
    }
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

char *options_apply(struct option_values *values, const struct tool *tool, const char *text,
                    enum option_source source, const char *origin) {
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
    struct text reason = {0};
    char *numbered = word.option ? NULL : numbered_value(name, size, &word.option, &reason);
    if (reason.size) {
        struct text message = {0};
        text_format(&message, "bad option: %s: %s", text, reason.bytes);
        text_free(&reason);
        free(numbered);
        return failure(origin, &message);
    }
    if (numbered)
        word.value = numbered;
    // "As many callers as there are" is none in Valgrind.
    if (word.option && word.value && strcmp(word.option->name, "separate-callers") == 0 &&
        strcmp(word.value, "auto") == 0)
        word.value = "0";
    if (word.option) {
        char *failed = apply_known(values, tool, &word, source, origin);
        free(numbered);
        return failed;
    }
    if (source != SOURCE_VALGRIND)
        return unknown(&word, name, size, origin);
    remark(values, true, origin, &word, "is unknown and is passed over");
    return NULL;
}
