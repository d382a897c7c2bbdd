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

void option_add_name(struct text *out, const struct option *option) {
    text_format(out, "%s%s", strlen(option->name) > 1 ? "--" : "-", option->name);
}

// ---- messages ----------------------------------------------------------------------------------

char *option_invalid(const struct option *option, const char *value, const char *advice) {
    struct text message = {0};
    text_format(&message, "invalid value '%s' for ", value);
    option_add_name(&message, option);
    text_format(&message, "; %s", advice);
    return text_take(&message);
}

char *option_lacks_value(const struct option *option) {
    struct text message = {0};
    option_add_name(&message, option);
    text_string(&message, " needs a value: ");
    option_add_name(&message, option);
    text_format(&message, "%s%s", strlen(option->name) > 1 ? "=" : " ", option_value_text(option));
    return text_take(&message);
}

char *option_excess_value(const struct option *option) {
    struct text message = {0};
    option_add_name(&message, option);
    text_string(&message, " takes no value");
    return text_take(&message);
}

static char *invalid_choice(const struct option *option, const char *value, const char *verb) {
    struct text advice = {0};
    text_format(&advice, "choose %s ", verb);
    for (const char *c = option->choices; *c; c++)
        text_add(&advice, *c == '|' ? ", " : c, *c == '|' ? 2 : 1);
    char *message = option_invalid(option, value, advice.bytes);
    text_free(&advice);
    return message;
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
    char *message = option_invalid(option, value, advice.bytes);
    text_free(&advice);
    return message;
}

static char *check_size(const struct option *option, const char *value) {
    unsigned long long bytes;
    bool is_rate = option->value && strstr(option->value, "/min");
    struct text advice = {0};
    if (!option_parse_size(value, is_rate, &bytes))
        text_format(&advice, "give a size such as 65536, 100M or 2G%s", is_rate ? "/min" : "");
    else if (bytes && bytes < (unsigned long long)option->least)
        text_format(&advice, "give a size of at least %ld", option->least);
    char *message = advice.size ? option_invalid(option, value, advice.bytes) : NULL;
    text_free(&advice);
    return message;
}

static char *check_byte(const struct option *option, const char *value) {
    char *end;
    unsigned long number = strtoul(value, &end, 16);
    if (isxdigit((unsigned char)*value) && !*end && number <= 255)
        return NULL;
    return option_invalid(option, value, "give a byte in hexadecimal, such as 0xa5");
}

static char *check_decimal(const struct option *option, const char *value) {
    char *end;
    double number = strtod(value, &end);
    if (isdigit((unsigned char)*value) && !*end && number >= (double)option->least &&
        number <= (double)option->most)
        return NULL;
    struct text advice = {0};
    text_format(&advice, "give a number from %ld to %ld", option->least, option->most);
    char *message = option_invalid(option, value, advice.bytes);
    text_free(&advice);
    return message;
}

static char *check_set(const struct option *option, const char *value) {
    const char *part = value;
    do {
        const char *end = strchrnul(part, ',');
        if (!option_choices_contain(option->choices, part, (size_t)(end - part))) {
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
    char *message = error ? option_invalid(option, value, error) : NULL;
    free(error);
    return message;
}

char *option_check(const struct option *option, const char *value) {
    switch (option->type) {
    case OPTION_BOOL:
    case OPTION_CHOICE:
        return option_choices_contain(option->choices, value, strlen(value))
                   ? NULL
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
