#include "cli/verbs.h"

#include <string.h>

#include "cli/arguments.h"
#include "cli/words.h"
#include "cli/waiting.h"

// In the order of help.
const struct verb *const verb_table[] = {
    &verb_print, &verb_annotate, &verb_export, &verb_ctl,   &verb_bench, &verb_diagnose,
    &verb_check, &verb_diff,     &verb_merge,  &verb_query, &verb_push,  &verb_baseline,
    &verb_view,  &verb_attach,   &verb_leaks,  &verb_vgdb,  &verb_names, &verb_help,
};
const size_t verb_count = sizeof verb_table / sizeof *verb_table;

const struct verb *verb_find(const char *name) {
    for (size_t i = 0; i < verb_count; i++)
        if (strcmp(verb_table[i]->name, name) == 0)
            return verb_table[i];
    return NULL;
}

static bool asks_for_help(char *const *words) {
    for (; *words; words++)
        if (strcmp(*words, "-h") == 0 || strcmp(*words, "--help") == 0)
            return true;
    return false;
}

int verb_start(const struct verb *verb, char *const *words) {
    if (asks_for_help(words)) {
        help_verb(stdout, verb);
        return words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
    }
    struct arguments arguments;
    waiting_show();
    int status = arguments_parse(&arguments, verb, words);
    if (!status && arguments.operand_count < verb->operands_least)
        status = help_usage_error(verb);
    else if (!status)
        status = verb->run(&arguments);
    arguments_free(&arguments);
    return status;
}
