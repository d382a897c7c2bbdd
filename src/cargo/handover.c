#include "cargo/handover.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"

// Both are lists of words with a separator behind each, as in CARGO_ENCODED_RUSTFLAGS.
#define OPTIONS   "CARGO_QUERN_OPTIONS"   // for quern
#define VARIABLES "CARGO_QUERN_VARIABLES" // to be taken back
#define SEPARATOR '\x1f'

enum { STATUS_NOT_RUNNABLE = 126, STATUS_NOT_FOUND = 127 };

// Appends a part of a variable's name as cargo writes it: with-lines is WITH_LINES.
static void add_name(struct text *text, const char *part) {
    for (; *part; part++)
        text_char(text,
                  (char)(isalnum((unsigned char)*part) ? toupper((unsigned char)*part) : '_'));
}

static void add_word(struct text *list, const char *word) {
    text_string(list, word);
    text_char(list, SEPARATOR);
}

// Sets a variable that the runner will take back.
static void set_variable(struct text *list, const char *name, const char *value) {
    setenv(name, value, 1);
    add_word(list, name);
}

// ---- before cargo ------------------------------------------------------------------------------

// Variables override the manifest. What the user has set stays.
static void set_profile(struct text *list, const char *profile) {
    static const struct {
        const char *key, *value;
    } settings[] = {{"DEBUG", "2"}, {"STRIP", "none"}, {"SPLIT_DEBUGINFO", "off"}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct text name = {0};
        text_string(&name, "CARGO_PROFILE_");
        add_name(&name, profile);
        text_format(&name, "_%s", settings[i].key);
        if (!getenv(name.bytes))
            set_variable(list, name.bytes, settings[i].value);
        text_free(&name);
    }
}

static void set_runner(struct text *list, const char *triple, const char *runner) {
    struct text name = {0};
    text_string(&name, "CARGO_TARGET_");
    add_name(&name, triple);
    text_string(&name, "_RUNNER");
    set_variable(list, name.bytes, runner);
    text_free(&name);
}

// The path of this program; false: it is not known.
static bool find_self(char self[PATH_MAX]) {
    ssize_t size = readlink("/proc/self/exe", self, PATH_MAX - 1);
    if (size <= 0)
        return false;
    self[size] = 0;
    return true;
}

char *handover_prepare(const struct command *command) {
    static const char *const profiles[] = {"dev", "test", "release", "bench"};
    static const char *const triples[] = {"x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"};
    char self[PATH_MAX];
    if (!find_self(self))
        return base_copy("cannot read /proc/self/exe; is /proc mounted?");
    if (strpbrk(self, " \t\n"))
        return base_copy("cargo divides the path of a runner at spaces; install Quern in a folder "
                         "without spaces");
    struct text runner = {0}, options = {0}, variables = {0};
    text_format(&runner, "%s %s", self, RUNNER_WORD);
    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++)
        set_profile(&variables, profiles[i]);
    if (command->profile)
        set_profile(&variables, command->profile);
    for (size_t i = 0; i < sizeof triples / sizeof *triples; i++)
        set_runner(&variables, triples[i], runner.bytes);
    if (command->triple)
        set_runner(&variables, command->triple, runner.bytes);
    for (size_t i = 0; i < command->option_count; i++)
        add_word(&options, command->options[i]);
    setenv(OPTIONS, options.bytes ? options.bytes : "", 1);
    setenv(VARIABLES, variables.bytes, 1);
    text_free(&runner);
    text_free(&options);
    text_free(&variables);
    return NULL;
}

// ---- cargo's runner ----------------------------------------------------------------------------

// Takes the first word off a list of words; NULL: there is none.
static char *take_word(char **list) {
    char *end = strchr(*list, SEPARATOR), *word = *list;
    if (!end)
        return NULL;
    *end = 0;
    *list = end + 1;
    return word;
}

// A copy of a variable, which is unset. To be freed.
static char *take_variable(const char *name) {
    char *value = base_copy(getenv(name) ? getenv(name) : "");
    unsetenv(name);
    return value;
}

int handover_run(char **program) {
    char self[PATH_MAX], *word;
    char *variables = take_variable(VARIABLES), *options = take_variable(OPTIONS);
    for (char *rest = variables; (word = take_word(&rest));)
        unsetenv(word);
    free(variables);
    if (!find_self(self)) {
        fputs("cargo-quern: cannot read /proc/self/exe; is /proc mounted?\n", stderr);
        return STATUS_NOT_RUNNABLE;
    }
    strcpy(strrchr(self, '/'), "/quern"); // shorter than the program's own name
    char **words = NULL;
    size_t count = 0;
    *vector_push(words, count) = self;
    for (char *rest = options; (word = take_word(&rest));)
        *vector_push(words, count) = word;
    *vector_push(words, count) = (char[]){"--"};
    do
        *vector_push(words, count) = *program;
    while (*program++);
    execv(self, words);
    fprintf(stderr, "cargo-quern: cannot run '%s': %s\n", self, strerror(errno));
    int status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUNNABLE;
    free(words);
    free(options);
    return status;
}
