// quern [options] program [arguments]: runs the target.
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "cli/nearest.h"
#include "cli/run/program.h"
#include "cli/run/run.h"
#include "cli/verbs.h"
#include "fleet/fleet.h"
#include "cli/words.h"

// ---- what the engine reads ---------------------------------------------------------------------

struct lines {
    char **at;
    size_t count;
};

static void add_line(struct lines *lines, struct text *line) {
    *vector_push(lines->at, lines->count) = text_take(line);
}

static void free_lines(struct lines *lines) {
    for (size_t i = 0; i < lines->count; i++)
        free(lines->at[i]);
    free(lines->at);
}

// The effective values, after what the tool itself sends: the first of several values holds.
static struct lines engine_options(const struct supervisor_tool *tool,
                                   const struct tool_setup *setup) {
    const struct option_values *values = setup->values;
    struct text line = {0};
    struct lines lines = {0};
    text_format(&line, "tool=%s", tool->name);
    add_line(&lines, &line);
    for (size_t i = 0; i < setup->option_count; i++) {
        text_string(&line, setup->options[i]);
        add_line(&lines, &line);
    }
    for (size_t i = 0; i < values->count; i++) {
        const struct option *option = values->options[i];
        if (option->local || option->state != OPTION_WORKS || !option_serves(option, tool))
            continue;
        const struct option_value *value = &values->values[i];
        size_t items = value->count ? value->count : option->initial != NULL;
        for (size_t j = 0; j < items; j++) {
            text_format(&line, "%s=%s", option->name,
                        value->count ? value->items[j] : option->initial);
            add_line(&lines, &line);
        }
    }
    text_format(&line, "verbosity=%d", setup->verbosity);
    add_line(&lines, &line);
    return lines;
}

// ---- settings that all tools share -------------------------------------------------------------

static void choose_log(const struct option_values *values, struct log_settings *log) {
    log->time_stamp = option_yes(values, "time-stamp");
    if (option_given(values, "log-file")) {
        log->kind = LOG_TO_FILE;
        log->place = option_text(values, "log-file");
    } else if (option_given(values, "log-socket")) {
        log->kind = LOG_TO_SOCKET;
        log->place = option_text(values, "log-socket");
    } else {
        log->kind = LOG_TO_FD;
        log->fd = (int)option_number(values, "log-fd");
    }
}

static void choose_names(const struct option_values *values, struct supervisor_request *request) {
    const struct option_value *cut = option_items(values, "fullpath-after");
    request->symbols = (struct symbols_options){
        .extra_debug_path = option_text(values, "extra-debuginfo-path"),
        .any_checksum = option_yes(values, "allow-mismatched-debuginfo"),
        .debuginfod = option_yes(values, "enable-debuginfod"),
        .keep_unmapped = option_yes(values, "keep-debuginfo"),
        .no_inlined = !option_yes(values, "read-inline-info"),
        .no_demangle = !option_yes(values, "demangle"),
    };
    request->stacks = (struct stack_text_options){
        .callers = (unsigned)option_number(values, "num-callers"),
        .show_below_main = option_yes(values, "show-below-main"),
        .symbol_offsets = option_yes(values, "sym-offsets"),
        .variables = option_yes(values, "read-var-info"),
        .fullpath_after = (const char *const *)cut->items,
        .fullpath_after_count = cut->count,
    };
}

// What the user typed before the program, after the path of quern itself. Ends with NULL.
static const char **own_words(char *const *words) {
    static char self[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = 0;
    size_t count = 0;
    while (words[count])
        count++;
    const char **list = base_allocate((count + 2) * sizeof *list);
    list[0] = self;
    memcpy(list + 1, words, count * sizeof *list);
    return list;
}

static char *choose_scenario(const struct option_values *values,
                             struct scenario_settings *scenario) {
    *scenario = (struct scenario_settings){.port = (int)option_number(values, "ready-port"),
                                           .udp_port = (int)option_number(values, "ready-udp-port"),
                                           .path = option_text(values, "ready-path"),
                                           .url = option_text(values, "ready-url"),
                                           .log = option_text(values, "ready-log"),
                                           .is_terminal = option_yes(values, "ready-terminal"),
                                           .timeout = option_number(values, "ready-timeout"),
                                           .load = option_text(values, "load")};
    regex_t regex;
    int wrong = scenario->log ? regcomp(&regex, scenario->log, REG_EXTENDED | REG_NOSUB) : 0;
    if (wrong) {
        char reason[128];
        struct text text = {0};
        regerror(wrong, &regex, reason, sizeof reason);
        text_format(&text, "--ready-log=%s is not a valid regular expression: %s", scenario->log,
                    reason);
        return text_take(&text);
    }
    if (scenario->log)
        regfree(&regex);
    if (scenario->is_terminal && !scenario->log)
        return base_copy("--ready-terminal needs --ready-log=REGEX");
    if (scenario->load && !supervisor_waits(scenario))
        return base_copy(
            "--load needs an option that says when to begin: --ready-port=PORT, --ready-url=URL, "
            "--ready-log=REGEX or another --ready option");
    return NULL;
}

// ---- the run -----------------------------------------------------------------------------------

// The tool or verb that somebody may have meant with the name of a program that is not there.
static const char *near_verb(const char *name) {
    struct nearest near = nearest_to(name, strlen(name));
    for (size_t i = 0; i < tool_count; i++)
        nearest_offer(&near, tool_table[i]->name);
    for (size_t i = 0; i < verb_count; i++)
        nearest_offer(&near, verb_table[i]->name);
    return near.found;
}

static int complain_of_program(const char *name, char *reason, int status) {
    const char *near = strchr(name, '/') ? NULL : near_verb(name);
    fprintf(stderr, "quern: %s%s%s%s\n", reason, near ? " (did you mean quern " : "",
            near ? near : "", near ? "?)" : "");
    free(reason);
    return status;
}

// The part of Quern that the target runs in.
static char *find_engine(char **problem) {
    char *path = words_part("quern-engine", X_OK);
    if (!path)
        *problem = base_copy("quern-engine is missing; reinstall or rebuild Quern");
    return path;
}

// Starts what exports the run. NULL, or why it cannot be, to be freed.
static char *start_fleet(const struct tool_setup *setup, const struct option_values *values,
                         struct supervisor_request *request) {
    struct fleet_settings settings = {
        .listen = option_text(values, "metrics-port"),
        .push = option_text(values, "push"),
        .push_interval = (unsigned)option_number(values, "push-interval"),
        .spool = option_text(values, "push-spool"),
        .spool_size = option_bytes(values, "push-spool-size"),
        .keep_days = (unsigned)option_number(values, "push-keep"),
        .credentials = option_text(values, "push-credentials"),
        .program = request->program,
        .service = option_text(values, "service"),
        .service_version = option_text(values, "service-version"),
        .is_quiet = setup->verbosity < 0,
    };
    char *problem = NULL;
    if (!settings.listen && !settings.push)
        return NULL;
    if (!request->tool->is_exported) {
        struct text text = {0};
        text_format(&text, "--%s is not supported yet with --tool=%s, only with heap",
                    settings.listen ? "metrics-port" : "push", request->tool->name);
        return text_take(&text);
    }
    char *exporter = words_part("quern-exporter", X_OK);
    settings.exporter = exporter;
    if (exporter)
        request->fleet = fleet_start(&settings, &problem);
    else
        problem = base_copy("quern-exporter is missing; reinstall or rebuild Quern");
    free(exporter);
    return problem;
}

// Fills what is left of the request from the options, and runs it.
static int run_request(struct tool_setup *setup, struct option_values *values, char *const *words,
                       struct supervisor_request *request) {
    struct run_options changes = {request->tool, values, request, setup};
    request->changer = (struct option_changer){run_change_option, &changes};
    request->own_words = own_words(words);
    char *error = choose_scenario(values, &request->scenario);
    if (!error)
        error = run_budgets(request->tool, request->tool_state, values, request);
    if (!error)
        error = run_outputs(values, request);
    if (!error)
        error = start_fleet(setup, values, request);
    if (error)
        fprintf(stderr, "quern: %s\n", error);
    fflush(NULL);
    int status = error ? 1 : supervisor_run(request);
    free(error);
    free((void *)request->own_words);
    return status;
}

// What there is to say before the run.
static void show_warnings(const struct supervisor_tool *tool, const struct option_values *values,
                          const struct tool_setup *setup) {
    static const char *const translated_only[] = {"track-fds", "modify-fds", "trace-malloc"};
    for (size_t i = 0; setup->is_native && i < 3; i++)
        if (!option_is(values, translated_only[i], "no"))
            fprintf(stderr, "quern: --%s has no effect: %s runs the program natively\n",
                    translated_only[i], tool->name);
    for (size_t i = 0; i < values->warning_count; i++)
        fprintf(stderr, "quern: %s\n", values->warnings[i]);
    if (setup->remarks.size)
        fputs(setup->remarks.bytes, stderr);
}

// What a process that runs cannot be asked for. NULL, or a reason to be freed.
static char *choose_attached(const struct supervisor_tool *tool, const struct tool_setup *setup,
                             struct supervisor_request *request) {
    static const char *const started_only[] = {"ready-port", "ready-udp-port", "ready-path",
                                               "ready-url",  "ready-log",      "load"};
    const struct option_values *values = setup->values;
    struct text text = {0};
    if (!setup->is_native)
        text_format(&text,
                    "--pid: with these options, %s runs the program in Quern's engine, and "
                    "so it has to start it. Options choose what is recorded natively, as "
                    "--mode=native of dhat and --stacks=no of massif do",
                    tool->name);
    for (size_t i = 0; i < sizeof started_only / sizeof *started_only && !text.size; i++)
        if (option_given(values, started_only[i]))
            text_format(&text, "--%s is for programs that Quern starts, not for --pid",
                        started_only[i]);
    if (!text.size && option_yes(values, "trace-children"))
        text_string(&text, "with --pid, children of the process are not followed; attach to them");
    if (!text.size && !(request->attach_library = words_part("quern-recorder.so", X_OK)))
        text_string(&text, "quern-recorder.so is missing; reinstall or rebuild Quern");
    return text.size ? text_take(&text) : NULL;
}

static int set_up_and_run(const struct supervisor_tool *tool, struct tool_setup *setup,
                          struct option_values *values, char *const *words,
                          struct supervisor_request *request) {
    char *engine = NULL;
    int status = 1;
    setup->problem = run_files(tool, values);
    request->tool_state = tool->settings ? tool->settings(setup) : NULL;
    if (!setup->problem && !setup->is_native)
        engine = find_engine(&setup->problem);
    if (!setup->problem && request->attach_pid)
        setup->problem = choose_attached(tool, setup, request);
    if (setup->problem) {
        fprintf(stderr, "quern: %s\n", setup->problem);
    } else {
        if (setup->verbosity >= 0)
            show_warnings(tool, values, setup);
        struct lines lines = engine_options(tool, setup);
        request->engine = engine;
        request->options = (const char *const *)lines.at;
        request->option_count = lines.count;
        status = run_request(setup, values, words, request);
        free_lines(&lines);
    }
    if (tool->release)
        tool->release(request->tool_state);
    free(engine);
    return status;
}

// With `pid`, that process is attached to, and `program` is what it runs.
static int run_program(const struct supervisor_tool *tool, struct option_values *values,
                       char *const *words, const char *program, char **argv, int pid) {
    int verbosity = (int)option_times(values, "verbose") - (option_given(values, "quiet") ? 1 : 0);
    struct supervisor_request request = {
        .tool = tool,
        .program = program,
        .argv = argv,
        .attach_pid = pid,
        .log.verbosity = verbosity,
        .duration = option_number(values, "duration"),
        .progress = option_number(values, "progress-interval"),
        .silent_after_fork = option_yes(values, "child-silent-after-fork"),
        .remarks = (const char *const *)values->remarks,
        .remark_count = values->remark_count,
        .debugger = {.is_enabled = strcmp(option_text(values, "vgdb"), "no") != 0,
                     .prefix = option_text(values, "vgdb-prefix")},
    };
    choose_log(values, &request.log);
    choose_names(values, &request);
    struct tool_setup setup = {
        .values = values,
        .program = program,
        .is_static = !pid && program_is_static(program),
        .verbosity = verbosity,
        .find_part = words_part,
        .stacks = &request.stacks,
        .symbols = &request.symbols,
        .xml = &request.xml,
    };
    int status = set_up_and_run(tool, &setup, values, words, &request);
    free_lines(&(struct lines){setup.options, setup.option_count});
    text_free(&setup.remarks);
    free(setup.problem);
    return status;
}

// As execvp does it: a shell runs a text without a #! line.
static int run_in_shell(const struct supervisor_tool *tool, struct option_values *values,
                        char *const *words, char *text, char **argv) {
    static char shell[] = "/bin/sh";
    size_t count = 0;
    while (argv[count])
        count++;
    char **shell_argv = base_allocate((count + 2) * sizeof *shell_argv);
    shell_argv[0] = shell;
    shell_argv[1] = text;
    memcpy(shell_argv + 2, argv + 1, count * sizeof *argv);
    int status = run_program(tool, values, words, shell, shell_argv, 0);
    free(shell_argv);
    return status;
}

int verb_run(const struct supervisor_tool *tool, struct option_values *values, char *const *words,
             char **argv) {
    int status = 0;
    char *problem = NULL;
    char *program = program_find(argv[0], &status, &problem);
    if (!program)
        return complain_of_program(argv[0], problem, status);
    if (program_is_shell_text(program))
        status = run_in_shell(tool, values, words, program, argv);
    else
        status = run_program(tool, values, words, program, argv, 0);
    free(program);
    return status;
}

// ---- a process that runs -----------------------------------------------------------------------

// The words of its command; NULL at the end.
static char **read_words(int pid) {
    char path[64], *line = NULL;
    size_t size = 0, count = 0;
    char **words = NULL;
    snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
    FILE *file = fopen(path, "re");
    while (file && getdelim(&line, &size, 0, file) >= 0)
        *vector_push(words, count) = base_copy(line);
    if (file)
        fclose(file);
    free(line);
    if (!count)
        *vector_push(words, count) = base_copy("?");
    *vector_push(words, count) = NULL;
    return words;
}

int verb_run_attached(const struct supervisor_tool *tool, struct option_values *values,
                      char *const *words) {
    char link[64], program[PATH_MAX];
    int pid = (int)option_number(values, "pid");
    char **argv = read_words(pid);
    snprintf(link, sizeof link, "/proc/%d/exe", pid);
    ssize_t size = readlink(link, program, sizeof program - 1);
    program[size > 0 ? size : 0] = 0;
    int status = run_program(tool, values, words, size > 0 ? program : argv[0], argv, pid);
    for (size_t i = 0; argv[i]; i++)
        free(argv[i]);
    free(argv);
    return status;
}
