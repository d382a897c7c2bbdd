#include "cli/arguments.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "cli/nearest.h"
#include "cli/options/check.h"
#include "cli/words.h"

// ---- finding -----------------------------------------------------------------------------------

static size_t option_total(const struct verb *verb) {
    size_t count = 0;
    while (verb->options && verb->options[count].name)
        count++;
    return count;
}

// Whether the word is this option. *value is set to what follows its '=', or a letter, or to NULL.
static bool is_option(const struct option *option, const char *word, const char **value) {
    size_t dashes = strspn(word, "-");
    const char *name = word + dashes;
    size_t size = strcspn(name, "=");
    bool by_letter = dashes == 1 && option->letter && name[0] == option->letter;
    *value = name[size] ? name + size + 1 : NULL;
    if (by_letter && size > 1 && option->type != OPTION_FLAG) // -n5
        *value = name + 1;
    if (by_letter)
        return size == 1 || option->type != OPTION_FLAG;
    return dashes == (option_is_short(option) ? 1 : 2) && strlen(option->name) == size &&
           memcmp(option->name, name, size) == 0;
}

// The option that the word begins with.
static const struct option *find_option(const struct verb *verb, const char *word,
                                        const char **value) {
    for (size_t i = 0; i < option_total(verb); i++)
        if (is_option(&verb->options[i], word, value))
            return &verb->options[i];
    return NULL;
}

static const struct argument_values *values_of(const struct arguments *arguments, const char *name,
                                               const struct option **option) {
    for (size_t i = 0; i < option_total(arguments->verb); i++) {
        *option = &arguments->verb->options[i];
        if (strcmp((*option)->name, name) == 0)
            return &arguments->values[i];
    }
    assert(!"an option that is not in the verb's table");
    return NULL;
}

// ---- parsing -----------------------------------------------------------------------------------

static int fail(char *message) {
    int status = words_fail("%s", message);
    free(message);
    return status;
}

static int refuse_unknown(const struct verb *verb, const char *word) {
    const char *name = word + strspn(word, "-");
    struct nearest near = nearest_to(name, strcspn(name, "="));
    struct text hint = {0};
    for (size_t i = 0; i < option_total(verb); i++)
        if (!option_is_short(&verb->options[i]))
            nearest_offer(&near, verb->options[i].name);
    if (near.found)
        text_format(&hint, " (did you mean --%s?)", near.found);
    int status = words_fail("unknown option '%s'%s; quern %s --help lists them", word,
                            hint.size ? hint.bytes : "", verb->name);
    text_free(&hint);
    return status;
}

static bool is_yes_or_no(const char *word) {
    return word && (strcmp(word, "yes") == 0 || strcmp(word, "no") == 0);
}

// Stores the value of an option. *word moves on if the next word is the value.
static int take_option(struct arguments *arguments, const struct option *option, const char *value,
                       char *const **word) {
    if (option->type == OPTION_FLAG && value)
        return fail(option_excess_value(option));
    if (option->type == OPTION_FLAG) {
        value = "yes";
    } else if (!value) {
        bool takes_next = option->type != OPTION_BOOL || is_yes_or_no((*word)[1]);
        value = takes_next ? (*word)[1] : "yes";
        *word += takes_next && value;
    }
    if (!value || (option->type == OPTION_STRING && !*value))
        return fail(option_lacks_value(option));
    char *error = option_check(option, value);
    if (error)
        return fail(error);
    struct argument_values *values = &arguments->values[option - arguments->verb->options];
    *vector_push(values->items, values->count) = value;
    return WORDS_DONE;
}

int arguments_parse(struct arguments *arguments, const struct verb *verb, char *const *words) {
    size_t count = 0;
    int status = WORDS_DONE;
    while (words[count])
        count++;
    *arguments = (struct arguments){
        .verb = verb,
        .words = words,
        .operands = base_allocate((count + 1) * sizeof *arguments->operands),
        .values = base_allocate((option_total(verb) + 1) * sizeof *arguments->values),
    };
    bool is_rest = false;
    for (char *const *word = words; *word && !status; word++) {
        const char *value;
        const struct option *option = is_rest ? NULL : find_option(verb, *word, &value);
        bool has_dash = (*word)[0] == '-' && (*word)[1] && !is_rest;
        is_rest |= option && verb->rest && strcmp(option->name, verb->rest) == 0;
        if (option)
            status = take_option(arguments, option, value, &word);
        else if (has_dash && !(verb->takes_dashes && arguments->operand_count))
            status = refuse_unknown(verb, *word);
        else
            arguments->operands[arguments->operand_count++] = *word;
    }
    return status;
}

void arguments_free(struct arguments *arguments) {
    for (size_t i = 0; i < option_total(arguments->verb); i++)
        free(arguments->values[i].items);
    free(arguments->values);
    free(arguments->operands);
    *arguments = (struct arguments){0};
}

// ---- values ------------------------------------------------------------------------------------

const struct argument_values *argument_items(const struct arguments *arguments, const char *name) {
    const struct option *option;
    return values_of(arguments, name, &option);
}

bool argument_given(const struct arguments *arguments, const char *name) {
    return argument_items(arguments, name)->count > 0;
}

const char *argument_text(const struct arguments *arguments, const char *name) {
    const struct option *option;
    const struct argument_values *values = values_of(arguments, name, &option);
    return values->count ? values->items[values->count - 1] : option->initial;
}

bool argument_yes(const struct arguments *arguments, const char *name) {
    const char *text = argument_text(arguments, name);
    return text && strcmp(text, "yes") == 0;
}

size_t argument_number(const struct arguments *arguments, const char *name) {
    const char *text = argument_text(arguments, name);
    return text ? strtoul(text, NULL, 10) : 0;
}

double argument_decimal(const struct arguments *arguments, const char *name) {
    const char *text = argument_text(arguments, name);
    return text ? strtod(text, NULL) : 0;
}

unsigned argument_choice(const struct arguments *arguments, const char *name) {
    const struct option *option;
    values_of(arguments, name, &option);
    const char *text = argument_text(arguments, name);
    struct option_choice choice;
    unsigned index = 0;
    while (option_choice_at(option, index, &choice) &&
           (strlen(text) != choice.size || memcmp(text, choice.name, choice.size) != 0))
        index++;
    return index;
}

int argument_refuse(const struct arguments *arguments, const char *name, const char *advice) {
    const struct option *option;
    values_of(arguments, name, &option);
    struct text label = {0};
    option_add_name(&label, option);
    int status = words_invalid(label.bytes, argument_text(arguments, name), advice);
    text_free(&label);
    return status;
}
