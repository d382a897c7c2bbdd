#include "cargo/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"

enum { OPTIONS_MOST = 2 };

// QUERN_TOOLS, from the table in src/tools/meson.build, consists of words with a blank behind each.
static const char tools[] = QUERN_TOOLS;

static const struct named_command {
    const char *name, *verb, *options[OPTIONS_MOST], *help;
} commands[] = {
    {"run", "run", {NULL}, "run the program under memcheck"},
    // A test that accesses memory in a wrong way has failed, as far as cargo is concerned.
    {"test", "test", {"--error-exitcode=101"}, "run the tests under memcheck; an error fails"},
    {"bench", "bench", {"--tool=flame"}, "run the benchmarks and draw where their time goes"},
    {"leaks",
     NULL,
     {"--leak-check=full", "--error-exitcode=101"},
     "run the program under memcheck; a leak fails"},
};
static const size_t command_count = sizeof commands / sizeof *commands;

static const struct named_command *find_command(const char *word) {
    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i].name, word) == 0)
            return &commands[i];
    return NULL;
}

static bool is_tool(const char *word) {
    size_t size = strlen(word);
    for (const char *tool = tools; *tool; tool = strchr(tool, ' ') + 1)
        if (strncmp(tool, word, size) == 0 && tool[size] == ' ')
            return true;
    return false;
}

static char *wrong_command(const char *word) {
    struct text message = {0};
    if (word)
        text_format(&message, "unknown command '%s'; choose one of", word);
    else
        text_string(&message, "no command specified; choose one of");
    for (size_t i = 0; i < command_count; i++)
        text_format(&message, " %s,", commands[i].name);
    text_format(&message, " or a tool: %s", tools);
    message.bytes[--message.size] = 0; // the last blank
    text_string(&message, " (cargo quern --help)");
    return text_take(&message);
}

static void add_option(struct command *command, const char *option) {
    *vector_push(command->options, command->option_count) = option;
}

// ---- what the words for cargo say --------------------------------------------------------------

// The value of the option `name` at this word: behind "=" or in the word that follows. NULL: the
// word is another option.
static const char *value_of(char **word, const char *name) {
    size_t size = strlen(name);
    if (strncmp(*word, name, size) != 0)
        return NULL;
    if ((*word)[size] == '=')
        return *word + size + 1;
    return (*word)[size] == 0 ? word[1] : NULL;
}

static bool is_option(const char *word, const char *name) {
    size_t size = strlen(name);
    return strncmp(word, name, size) == 0 && (word[size] == 0 || word[size] == '=');
}

// Only `cargo bench` and `cargo test` know these.
static const char *verb_of_option(const char *word) {
    static const char *const benches[] = {"--bench", "--benches"};
    static const char *const tests[] = {"--test", "--tests",    "--lib",        "--bins",
                                        "--doc",  "--examples", "--all-targets"};
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        if (is_option(word, benches[i]))
            return "bench";
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (is_option(word, tests[i]))
            return "test";
    return NULL;
}

static bool asks_for_help(const char *word) {
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static void read_rest(struct command *command) {
    for (char **word = command->rest; *word && strcmp(*word, "--") != 0; word++) {
        const char *profile = value_of(word, "--profile"), *triple = value_of(word, "--target");
        command->wants_help |= asks_for_help(*word);
        if (profile)
            command->profile = profile;
        if (triple)
            command->triple = triple;
        if (!command->verb)
            command->verb = verb_of_option(*word);
    }
    if (!command->verb)
        command->verb = "run";
}

// ---- the whole command line --------------------------------------------------------------------

// Reads COMMAND and the verb behind it. Returns the words for cargo.
static char **read_command(struct command *command, char **words) {
    const struct named_command *named = find_command(*words);
    if (named) {
        command->verb = named->verb;
        for (size_t i = 0; i < OPTIONS_MOST && named->options[i]; i++)
            add_option(command, named->options[i]);
    } else {
        struct text option = {0};
        text_format(&option, "--tool=%s", *words);
        add_option(command, text_take(&option));
    }
    words++;
    const struct named_command *verb = *words ? find_command(*words) : NULL;
    if (!command->verb && verb && verb->verb) {
        command->verb = verb->verb;
        words++;
    }
    return words;
}

char *command_read(struct command *command, char **words) {
    char **first = words;
    *command = (struct command){0};
    for (; *words && (*words)[0] == '-'; words++) {
        command->wants_help |= asks_for_help(*words);
        command->wants_version |= strcmp(*words, "--version") == 0 || strcmp(*words, "-V") == 0;
    }
    if (command->wants_help || command->wants_version)
        return NULL;
    if (!*words || (!find_command(*words) && !is_tool(*words)))
        return wrong_command(*words);
    command->rest = read_command(command, words);
    for (; first < words; first++)
        add_option(command, *first);
    read_rest(command);
    return NULL;
}

void command_free(struct command *command) {
    free(command->options);
}

void command_help(void) {
    puts("usage: cargo quern [QUERN OPTIONS] COMMAND [run|test|bench] [CARGO OPTIONS]\n"
         "                   [-- ARGUMENTS]\n\n"
         "Builds with debug information, as `cargo run`, `cargo test` or `cargo bench`, and runs\n"
         "what these would run under Quern. Options before COMMAND are for quern (quern --help),\n"
         "options behind it for cargo; ARGUMENTS are for the program.\n");
    for (size_t i = 0; i < command_count; i++)
        printf("  %-7s %s\n", commands[i].name, commands[i].help);
    printf("  TOOL    run the program under this tool:\n          %s\n\n", tools);
    puts("With leaks or TOOL, cargo runs the program unless the next word is test or bench, or an\n"
         "option chooses tests (--test, --tests, --lib) or benchmarks (--bench, --benches).\n\n"
         "examples:\n"
         "  cargo quern leaks --release -- --port 3000\n"
         "  cargo quern --max-peak=50M heap --example parse\n"
         "  cargo quern test -p core -- --test-threads=1\n"
         "  cargo quern callgrind --bench parse");
}
