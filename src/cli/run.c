// quern [options] program [arguments]: runs the target.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/program.h"
#include "cli/verbs.h"
#include "config.h"
#include "supervisor/supervisor.h"

// The engine lies beside quern in a build folder, or in libexec below the same prefix.
static char *find_engine(void) {
    char self[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size <= 0)
        return NULL;
    self[size] = 0;
    *strrchr(self, '/') = 0;
    static const char *const places[] = {"quern-engine", QUERN_ENGINE_FROM_BIN};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct text path = {0};
        text_format(&path, "%s/%s", self, places[i]);
        char *real = realpath(path.bytes, NULL);
        text_free(&path);
        if (real && access(real, X_OK) == 0)
            return real;
        free(real);
    }
    return access(QUERN_ENGINE_PATH, X_OK) == 0 ? base_copy(QUERN_ENGINE_PATH) : NULL;
}

// The effective values, as the engine reads them.
static char **engine_options(const struct tool *tool, const struct option_values *values,
                             int verbosity, size_t *count) {
    struct text line = {0};
    char **lines = NULL;
    *count = 0;
    text_format(&line, "tool=%s", tool->name);
    lines = base_allocate(sizeof *lines);
    lines[(*count)++] = text_take(&line);
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        const struct tool *owner = option_tool(option);
        if (option->local || option->state != OPTION_WORKS || (owner && owner != tool))
            continue;
        const struct option_value *value = &values->values[i];
        size_t items = value->count ? value->count : option->initial != NULL;
        for (size_t j = 0; j < items; j++) {
            text_format(&line, "%s=%s", option->name,
                        value->count ? value->items[j] : option->initial);
            lines = base_reallocate(lines, (*count + 2) * sizeof *lines);
            lines[(*count)++] = text_take(&line);
        }
    }
    text_format(&line, "verbosity=%d", verbosity);
    lines = base_reallocate(lines, (*count + 1) * sizeof *lines);
    lines[(*count)++] = text_take(&line);
    return lines;
}

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
        .debuginfod = option_yes(values, "enable-debuginfod"),
        .keep_unmapped = option_yes(values, "keep-debuginfo"),
        .no_inlined = !option_yes(values, "read-inline-info"),
        .no_demangle = !option_yes(values, "demangle"),
    };
    request->stacks = (struct stack_text_options){
        .callers = (unsigned)option_number(values, "num-callers"),
        .show_below_main = option_yes(values, "show-below-main"),
        .symbol_offsets = option_yes(values, "sym-offsets"),
        .fullpath_after = (const char *const *)cut->items,
        .fullpath_after_count = cut->count,
    };
}

int verb_run(const struct tool *tool, const struct option_values *values, char **argv) {
    int status = 0;
    char *reason = NULL;
    char *program = program_find(argv[0], &status, &reason);
    if (!program) {
        fprintf(stderr, "quern: %s\n", reason);
        free(reason);
        return status;
    }
    char *engine = find_engine();
    if (!engine) {
        fprintf(stderr, "quern: quern-engine is missing; reinstall or rebuild Quern\n");
        free(program);
        return 1;
    }
    int verbosity = (int)option_times(values, "verbose") - (option_given(values, "quiet") ? 1 : 0);
    for (size_t i = 0; verbosity >= 0 && i < values->warning_count; i++)
        fprintf(stderr, "quern: %s\n", values->warnings[i]);

    size_t count;
    char **options = engine_options(tool, values, verbosity, &count);
    struct supervisor_request request = {
        .tool = tool->name,
        .tool_help = tool->help,
        .program = program,
        .argv = argv,
        .engine = engine,
        .options = (const char *const *)options,
        .option_count = count,
        .log.verbosity = verbosity,
        .duration = option_number(values, "duration"),
        .silent_after_fork = option_yes(values, "child-silent-after-fork"),
        .remarks = (const char *const *)values->remarks,
        .remark_count = values->remark_count,
    };
    choose_log(values, &request.log);
    choose_names(values, &request);
    fflush(NULL);
    status = supervisor_run(&request);
    for (size_t i = 0; i < count; i++)
        free(options[i]);
    free(options);
    free(engine);
    free(program);
    return status;
}
