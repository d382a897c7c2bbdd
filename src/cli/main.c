// The quern program: parses the command line and starts a verb or a run.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stack.h"
#include "base/text.h"
#include "cli/names.h"
#include "cli/nearest.h"
#include "cli/options/options.h"
#include "cli/options/sources.h"
#include "cli/verbs.h"

#define STATUS_FAILED 1
#define STACK_LEAST   (4ul << 20)

// The command line, taken apart.
struct command {
    char **options; // the option words; NULL-terminated
    size_t option_count;
    char **target;    // the program and its arguments; NULL-terminated
    const char *tool; // named by --tool or by a word of its own
};

static const char *tool_of_word(const char *word) {
    return strncmp(word, "--tool=", 7) == 0 ? word + 7 : NULL;
}

// Options end at the first word that is not one. If no --tool is given and that word names a tool,
// it selects the tool: `quern none ls`, `quern -q none ls`. A program with the name of a tool is
// run by its path or after --, or if Quern was called as valgrind.
static void take_apart(struct command *command, size_t count, char **argv) {
    char **word = argv + 1;
    command->options = base_allocate((count + 1) * sizeof *command->options);
    for (; *word; word++) {
        if (strcmp(*word, "--") == 0) {
            word++;
            break;
        }
        if ((*word)[0] == '-') {
            command->options[command->option_count++] = *word;
            if (tool_of_word(*word))
                command->tool = tool_of_word(*word);
        } else if (!command->tool && !names_claim_valgrind() && tool_find(*word)) {
            command->tool = *word;
        } else {
            break;
        }
    }
    command->target = word;
}

// The tool decides which options apply, so it is chosen first. As in Valgrind, --tool does not
// count in Valgrind's own rc files.
static const char *choose_tool(const struct command *command, const struct source_words *words) {
    const char *tool = NULL;
    for (size_t i = 0; i < words->count; i++)
        if (words->words[i].source == SOURCE_QUERN && tool_of_word(words->words[i].text))
            tool = tool_of_word(words->words[i].text);
    if (command->tool)
        tool = command->tool;
    return tool ? tool : "memcheck";
}

static bool has_word(const struct command *command, const char *wanted) {
    for (char **word = command->options; *word; word++)
        if (strcmp(*word, wanted) == 0)
            return true;
    return false;
}

static int fail(char *message) {
    fprintf(stderr, "quern: %s\n", message);
    free(message);
    return STATUS_FAILED;
}

// Applies all words in order. NULL, or a message.
static char *apply_all(struct option_values *values, const struct supervisor_tool *tool,
                       const struct command *command, const struct source_words *words) {
    char *error = NULL;
    if (names_claim_valgrind()) // of a version that has it
        error = options_apply(values, tool, "--xml-protocol=6", SOURCE_QUERN, NULL);
    for (size_t i = 0; i < words->count && !error; i++) {
        const struct source_word *word = &words->words[i];
        if (word->source == SOURCE_VALGRIND && tool_of_word(word->text))
            continue;
        error = options_apply(values, tool, word->text, word->source, word->origin);
    }
    for (char **word = command->options; *word && !error; word++)
        error = options_apply(values, tool, *word, SOURCE_COMMAND_LINE, NULL);
    return error;
}

// Options that only print something, such as --help; -1 if there is none of them.
static int print_only(const struct command *command) {
    const struct supervisor_tool *tool = command->tool ? tool_find(command->tool) : NULL;
    if (has_word(command, "--help") || has_word(command, "-h"))
        return help_short(tool);
    if (has_word(command, "--help-all"))
        return help_all(tool, false);
    if (has_word(command, "--help-debug"))
        return help_all(tool, true);
    if (has_word(command, "--help-dyn-options"))
        return help_dynamic();
    if (has_word(command, "--version"))
        return help_version();
    if (has_word(command, "--generate=man"))
        return generate_manual();
    if (has_word(command, "--generate=bash"))
        return generate_bash_completion();
    if (has_word(command, "--generate=zsh"))
        return generate_zsh_completion();
    return -1;
}

static char *wrong_tool(const struct supervisor_tool *tool, const char *name) {
    struct text message = {0};
    struct nearest near = nearest_to(name, strlen(name));
    text_format(&message, tool ? "tool '%s' is not supported yet" : "unknown tool '%s'", name);
    for (size_t i = 0; i < tool_count; i++)
        if (!tool_table[i]->is_planned)
            nearest_offer(&near, tool_table[i]->name);
    if (near.found)
        text_format(&message, " (did you mean %s?)", near.found);
    text_string(&message, "; choose one of");
    for (size_t i = 0, shown = 0; i < tool_count; i++)
        if (!tool_table[i]->is_planned)
            text_format(&message, "%s %s", shown++ ? "," : "", tool_table[i]->name);
    return text_take(&message);
}

static int run(const struct command *command, const struct source_words *words) {
    struct option_values values;
    const char *name = choose_tool(command, words);
    const struct supervisor_tool *tool = tool_find(name);
    options_init(&values);
    char *error = tool && !tool->is_planned ? apply_all(&values, tool, command, words)
                                            : wrong_tool(tool, name);
    bool is_attached = !error && option_given(&values, "pid");
    if (is_attached && *command->target)
        error = base_copy("--pid names a process that runs: a program cannot be given as well");
    if (!error && !is_attached && !*command->target)
        error = base_copy("no program specified; usage: quern [options] program [arguments]");
    if (error) {
        options_free(&values);
        return fail(error);
    }
    int status = is_attached ? verb_run_attached(tool, &values, command->options)
                             : verb_run(tool, &values, command->options, command->target);
    options_free(&values);
    return status;
}

// `quern attach PID ...` is short for `quern heap --pid=PID ...`. Without a number it is a verb
// that shows its usage.
static void attach_as_heap(char **argv) {
    static char heap[] = "heap", pid[64];
    if (!argv[1] || !argv[2] || strcmp(argv[1], verb_attach.name) != 0 ||
        argv[2][strspn(argv[2], "0123456789")] || strlen(argv[2]) > 32)
        return;
    snprintf(pid, sizeof pid, "--pid=%s", argv[2]);
    argv[1] = heap;
    argv[2] = pid;
}

static int start(char **argv) {
    struct command command = {0};
    struct source_words words = {0};
    const struct verb *verb = NULL;
    size_t argc = 0;
    int ended;
    enum names_call call = names_translate(&argv, &verb, &ended);
    while (argv[argc])
        argc++;
    if (call == NAMES_ENDED)
        return ended;
    if (call == NAMES_VERB)
        return verb_start(verb, argv + 1);
    if (!names_claim_valgrind())
        attach_as_heap(argv);
    if (argc > 1 && !names_claim_valgrind())
        verb = verb_find(argv[1]);
    if (verb)
        return verb_start(verb, argv + 2);
    take_apart(&command, argc, argv);
    int status = print_only(&command);
    if (status < 0) {
        if (!has_word(&command, "--command-line-only=yes"))
            sources_read(&words);
        status = run(&command, &words);
        sources_free(&words);
    }
    free(command.options);
    return status;
}

static struct {
    char **words;
    int status;
} command_line;

static void start_on_stack(void) {
    command_line.status = start(command_line.words);
}

int main(int argc, char **argv) {
    if (argc < 1)
        return STATUS_FAILED;
    command_line.words = argv;
    stack_call(STACK_LEAST, start_on_stack);
    return command_line.status;
}
