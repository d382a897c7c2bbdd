#include "cli/options/check.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/template.h"
#include "base/text.h"

bool option_choices_contain(const char *choices, const char *word, size_t size) {
    while (choices && *choices) {
        const char *end = strchrnul(choices, '|');
        if ((size_t)(end - choices) == size && memcmp(choices, word, size) == 0)
            return true;
        choices = *end ? end + 1 : end;
    }
    return false;
}

bool option_choice_at(const struct option *option, size_t index, struct option_choice *choice) {
    if (option->offers) {
        bool exists = option->offers(index, choice);
        choice->size = exists ? strlen(choice->name) : 0;
        return exists;
    }
    const char *name = option->choices ? option->choices : "";
    for (; index && *name; index--) {
        const char *end = strchrnul(name, '|');
        name = *end ? end + 1 : end;
    }
    *choice = (struct option_choice){.name = name, .size = strcspn(name, "|")};
    return *name != 0;
}

// Whether `word`, of `size` characters, is a choice of the option.
static bool is_choice(const struct option *option, const char *word, size_t size) {
    struct option_choice choice;
    for (size_t i = 0; option_choice_at(option, i, &choice); i++)
        if (choice.size == size && memcmp(choice.name, word, size) == 0)
            return true;
    return false;
}

bool option_is_short(const struct option *option) {
    return option->letter && !option->name[1];
}

void option_add_name(struct text *out, const struct option *option) {
    text_format(out, "%s%s", option_is_short(option) ? "-" : "--", option->name);
}

// ---- messages ----------------------------------------------------------------------------------

char *option_invalid(const char *name, const char *value, const char *advice) {
    struct text message = {0};
    text_format(&message, "invalid value '%s' for %s; %s", value, name, advice);
    return text_take(&message);
}

static char *invalid(const struct option *option, const char *value, struct text *advice) {
    struct text name = {0};
    option_add_name(&name, option);
    char *message = option_invalid(name.bytes, value, advice->bytes);
    text_free(&name);
    text_free(advice);
    return message;
}

char *option_lacks_value(const struct option *option) {
    struct text message = {0};
    option_add_name(&message, option);
    text_string(&message, " needs a value: ");
    option_add_name(&message, option);
    text_format(&message, "%s%s", option_is_short(option) ? " " : "=", option_value_text(option));
    return text_take(&message);
}

char *option_excess_value(const struct option *option) {
    struct text message = {0};
    option_add_name(&message, option);
    text_string(&message, " takes no value");
    return text_take(&message);
}

static char *invalid_choice(const struct option *option, const char *value, const char *how) {
    struct text advice = {0};
    struct option_choice choice;
    text_format(&advice, "choose %s ", how);
    for (size_t i = 0; option_choice_at(option, i, &choice); i++)
        text_format(&advice, "%s%.*s", i ? ", " : "", (int)choice.size, choice.name);
    return invalid(option, value, &advice);
}

// ---- types -------------------------------------------------------------------------------------

static char *check_number(const struct option *option, const char *value) {
    char *end;
    errno = 0;
    bool hex = option->type == OPTION_HEX;
    long number = strtol(value, &end, hex ? 0 : 10);
    if (isdigit((unsigned char)value[*value == '-']) && !*end && errno == 0 &&
        number >= option->least && number <= option->most)
        return NULL;
    struct text advice = {0};
    if (option->most == LONG_MAX)
        text_format(&advice, "give a number of at least %ld", option->least);
    else
        text_format(&advice, "give a number from %ld to %ld", option->least, option->most);
    if (hex)
        text_string(&advice, ", such as 0x1f");
    return invalid(option, value, &advice);
}

static char *check_size(const struct option *option, const char *value) {
    unsigned long long bytes;
    bool is_rate = option->value && strstr(option->value, "/min");
    struct text advice = {0};
    if (!option_parse_size(value, is_rate, &bytes))
        text_format(&advice, "give a size such as 65536, 100M or 2G%s", is_rate ? "/min" : "");
    else if (bytes && bytes < (unsigned long long)option->least)
        text_format(&advice, "give a size of at least %ld", option->least);
    return advice.size ? invalid(option, value, &advice) : NULL;
}

static char *check_byte(const struct option *option, const char *value) {
    char *end;
    unsigned long number = strtoul(value, &end, 16);
    if (isxdigit((unsigned char)*value) && !*end && number <= 255)
        return NULL;
    struct text advice = {0};
    text_string(&advice, "give a byte in hexadecimal, such as 0xa5");
    return invalid(option, value, &advice);
}

static char *check_decimal(const struct option *option, const char *value) {
    char *end;
    double number = strtod(value, &end);
    if (isdigit((unsigned char)*value) && !*end && number >= (double)option->least &&
        number <= (double)option->most)
        return NULL;
    struct text advice = {0};
    text_format(&advice, "give a number from %ld to %ld", option->least, option->most);
    return invalid(option, value, &advice);
}

static char *check_set(const struct option *option, const char *value) {
    const char *part = value;
    do {
        const char *end = strchrnul(part, ',');
        if (!is_choice(option, part, (size_t)(end - part))) {
            struct text wrong = {0};
            text_add(&wrong, part, (size_t)(end - part));
            char *message = invalid_choice(option, wrong.size ? wrong.bytes : "", "any of");
            text_free(&wrong);
            return message;
        }
        part = *end ? end + 1 : end;
    } while (*part);
    return NULL;
}

static char *check_template(const struct option *option, const char *value) {
    char *error = NULL;
    free(template_expand(value, 1, 1, &error));
    if (!error)
        return NULL;
    struct text advice = {0};
    text_string(&advice, error);
    free(error);
    return invalid(option, value, &advice);
}

char *option_check(const struct option *option, const char *value) {
    switch (option->type) {
    case OPTION_BOOL:
    case OPTION_CHOICE:
        return is_choice(option, value, strlen(value)) ? NULL
                                                       : invalid_choice(option, value, "one of");
    case OPTION_NUMBER:
    case OPTION_HEX:
        return check_number(option, value);
    case OPTION_SIZE:
        return check_size(option, value);
    case OPTION_BYTE:
        return check_byte(option, value);
    case OPTION_DECIMAL:
        return check_decimal(option, value);
    case OPTION_SET:
        return check_set(option, value);
    case OPTION_FILE:
        return check_template(option, value);
    case OPTION_FLAG:
    case OPTION_STRING:
        break;
    }
    return NULL;
}
