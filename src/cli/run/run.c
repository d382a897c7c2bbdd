// quern [options] program [arguments]: runs the target.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/caches.h"
#include "cli/nearest.h"
#include "cli/run/program.h"
#include "cli/run/findings.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "config.h"
#include "supervisor/supervisor.h"

static enum heap_tool heap_tool_of(const struct supervisor_tool *tool,
                                   const struct option_values *values) {
    if (strcmp(tool->name, "massif") == 0)
        return HEAP_TOOL_MASSIF;
    if (strcmp(tool->name, "dhat") == 0 && strcmp(option_text(values, "mode"), "native") == 0)
        return HEAP_TOOL_DHAT;
    return strcmp(tool->name, "heap") == 0 ? HEAP_TOOL_RECORD : HEAP_TOOL_NONE;
}

static bool is_flame(const struct supervisor_tool *tool) {
    return strcmp(tool->name, "flame") == 0;
}

// Costs are counted, for one of the two that write them.
static bool is_counting(const struct supervisor_tool *tool) {
    return strcmp(tool->name, "callgrind") == 0 || strcmp(tool->name, "cachegrind") == 0;
}

static void add_line(char ***lines, size_t *count, struct text *line) {
    *lines = base_reallocate(*lines, (*count + 1) * sizeof **lines);
    (*lines)[(*count)++] = text_take(line);
}

// Whether caches are simulated, and which; false after a message about what is wrong.
static bool add_simulation(const struct supervisor_tool *tool, const struct option_values *values,
                           int verbosity, char ***lines, size_t *count) {
    static const char *const names[CACHE_KINDS] = {"I1", "D1", "LL"};
    struct cache_shape shapes[CACHE_KINDS];
    struct text line = {0}, remarks = {0}, reason = {0};
    bool given = false;
    for (unsigned i = 0; i < CACHE_KINDS; i++)
        given |= option_given(values, names[i]);
    if (strcmp(tool->name, "callgrind") == 0)
        given |= option_yes(values, "simulate-wb") || option_yes(values, "simulate-hwpref") ||
                 option_yes(values, "cacheuse");
    bool on = option_given(values, "cache-sim") && !given
                  ? option_yes(values, "cache-sim")
                  : given || strcmp(tool->name, "cachegrind") == 0;
    text_format(&line, "simulate-branches=%s", option_yes(values, "branch-sim") ? "yes" : "no");
    add_line(lines, count, &line);
    if (!on)
        return true;
    caches_detect(shapes, &remarks);
    for (unsigned i = 0; i < CACHE_KINDS && !reason.size; i++) {
        const char *text = option_text(values, names[i]);
        if (text)
            cache_parse(text, &shapes[i], &reason);
        if (reason.size)
            fprintf(stderr, "quern: bad option: --%s=%s: %s\n", names[i], text, reason.bytes);
        text_format(&line, "cache-%s=%llu,%u,%u", names[i], (unsigned long long)shapes[i].size,
                    shapes[i].assoc, shapes[i].line);
        add_line(lines, count, &line);
    }
    if (remarks.size && verbosity >= 0 && !option_given(values, "LL"))
        fprintf(stderr, "%s", remarks.bytes);
    text_string(&line, "simulate-caches=yes");
    add_line(lines, count, &line);
    bool sound = !reason.size;
    text_free(&remarks);
    text_free(&reason);
    return sound;
}

// The effective values, as the engine reads them.
static char **engine_options(const struct supervisor_tool *tool, const struct option_values *values,
                             int verbosity, size_t *count) {
    struct text line = {0};
    char **lines = NULL;
    *count = 0;
    text_format(&line, "tool=%s", tool->name);
    lines = base_allocate(4 * sizeof *lines);
    lines[(*count)++] = text_take(&line);
    // Red zones of a size that was asked for are never narrower.
    if (strcmp(tool->name, "memcheck") == 0 && option_given(values, "redzone-size"))
        lines[(*count)++] = base_copy("redzone-asked=yes");
    // XML has all details of leaks. The first of several values is the one that holds.
    if (strcmp(tool->name, "memcheck") == 0 &&
        (option_yes(values, "xml") || option_yes(values, "xtree-leak")))
        lines[(*count)++] = base_copy("leak-check=full");
    if (heap_tool_of(tool, values) && !option_given(values, "leak-check"))
        lines[(*count)++] = base_copy("leak-check=no");
    for (size_t i = 0; i < values->count; i++) {
        const struct option *option = values->options[i];
        if (option->local || option->state != OPTION_WORKS || !option_serves(option, tool))
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
    lines = base_reallocate(lines, (*count + 2) * sizeof *lines);
    lines[(*count)++] = text_take(&line);
    if (heap_tool_of(tool, values)) {
        // Frames below main, and alloc functions, are taken off later.
        enum heap_tool heap_tool = heap_tool_of(tool, values);
        long depth = heap_tool == HEAP_TOOL_MASSIF ? option_number(values, "depth") + 40
                     : heap_tool == HEAP_TOOL_DHAT ? option_number(values, "num-callers") + 40
                                                   : option_number(values, "heap-depth");
        text_format(&line, "recorder-depth=%ld", depth < 250 ? depth : 250);
        lines[(*count)++] = text_take(&line);
    }
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
        .variables = option_yes(values, "read-var-info"),
        .fullpath_after = (const char *const *)cut->items,
        .fullpath_after_count = cut->count,
    };
}

// The options of the tool that were given, as the head of its output file shows them.
static char *given_options(const struct supervisor_tool *tool, const struct option_values *values) {
    struct text line = {0};
    for (size_t i = 0; i < values->count; i++) {
        for (size_t j = 0; option_tool(values->options[i]) == tool && j < values->values[i].count;
             j++)
            text_format(&line, "%s--%s=%s", line.size ? " " : "", values->options[i]->name,
                        values->values[i].items[j]);
    }
    return line.size ? text_take(&line) : NULL;
}

// Why the target is to run translated although its heap is all that matters; NULL: it is not.
static const char *engine_reason(enum heap_tool tool, const struct option_values *values,
                                 const char *program) {
    if (tool == HEAP_TOOL_MASSIF && option_yes(values, "pages-as-heap"))
        return "Pages are followed by the engine: the program runs translated, which is slower";
    if (tool == HEAP_TOOL_MASSIF && option_yes(values, "stacks"))
        return "Stacks are followed by the engine: the program runs translated, which is slower";
    if (tool == HEAP_TOOL_MASSIF && strcmp(option_text(values, "time-unit"), "i") == 0)
        return "Instructions are counted by the engine: the program runs translated, which is "
               "slower";
    if (tool && program_is_static(program))
        return "The program is statically linked: it runs translated, by the engine, which is "
               "slower";
    return NULL;
}

static enum massif_time time_unit(const char *text) {
    if (strcmp(text, "i") == 0)
        return MASSIF_INSTRUCTIONS;
    return strcmp(text, "B") == 0 ? MASSIF_BYTES : MASSIF_MILLISECONDS;
}

static void choose_massif(const struct supervisor_tool *tool, const struct option_values *values,
                          struct supervisor_request *request) {
    struct heap_settings *heap = &request->heap;
    const struct option_value *alloc = option_items(values, "alloc-fn");
    const struct option_value *ignore = option_items(values, "ignore-fn");
    bool pages = option_yes(values, "heap") && option_yes(values, "pages-as-heap");
    heap->out_file = option_text(values, "massif-out-file");
    heap->description = given_options(tool, values);
    heap->threshold = strtod(option_text(values, "threshold"), NULL);
    heap->massif = (struct massif_options){
        .time_unit = time_unit(option_text(values, "time-unit")),
        .no_heap = !option_yes(values, "heap"),
        .is_pages = pages,
        .heap_admin = pages ? 0 : (unsigned)option_number(values, "heap-admin"),
        .max_snapshots = (unsigned)option_number(values, "max-snapshots"),
        .detailed_freq = (unsigned)option_number(values, "detailed-freq"),
        .peak_inaccuracy = strtod(option_text(values, "peak-inaccuracy"), NULL),
    };
    heap->names = (struct heap_names_options){
        .alloc_fns = (const char *const *)alloc->items,
        .alloc_fn_count = alloc->count,
        .ignore_fns = (const char *const *)ignore->items,
        .ignore_fn_count = ignore->count,
        .depth = (size_t)option_number(values, "depth"),
    };
    if (strcmp(option_text(values, "xtree-memory"), "none") != 0)
        heap->xtree_memory = option_text(values, "xtree-memory-file");
    heap->xtree_compress = option_yes(values, "xtree-compress-strings");
    if (!option_given(values, "time-unit") && !heap->note)
        heap->note = "Time is in milliseconds; --time-unit=i counts instructions (slower)";
}

static void choose_heap(const struct supervisor_tool *tool, const struct option_values *values,
                        struct supervisor_request *request) {
    struct heap_settings *heap = &request->heap;
    if (heap->tool == HEAP_TOOL_MASSIF) {
        choose_massif(tool, values, request);
    } else if (heap->tool == HEAP_TOOL_DHAT) {
        heap->out_file = option_text(values, "dhat-out-file");
        heap->names.depth = (size_t)option_number(values, "num-callers");
    } else {
        heap->out_file = option_text(values, "heap-out-file");
        heap->top = (size_t)option_number(values, "top");
        heap->max_size = option_bytes(values, "max-size");
        heap->names.depth = HEAP_FRAMES_MAX;
    }
    run_heap_leaks(values, &heap->leaks);
    heap->names.text = request->stacks;
    // Names are asked for at the end, when libraries may have been unloaded.
    request->symbols.keep_unmapped = true;
    // As when the recording is read; losses are shown as memcheck shows them.
    request->symbols.plain_libc =
        heap->tool == HEAP_TOOL_RECORD && heap->leaks.check == LEAK_CHECK_NO;
}

static enum flame_sampler sampler_of(const char *text) {
    return strcmp(text, "perf") == 0     ? FLAME_PERF
           : strcmp(text, "timers") == 0 ? FLAME_TIMERS
                                         : FLAME_ANY;
}

static void choose_flame(const struct option_values *values, const char *program,
                         struct flame_settings *flame) {
    *flame = (struct flame_settings){
        .frequency = (unsigned)option_number(values, "freq"),
        .stack_bytes = (size_t)option_number(values, "stack-bytes"),
        .children = option_yes(values, "trace-children"),
        .sampler = sampler_of(option_text(values, "sampler")),
        .agent = words_part("quern-sampler.so", R_OK),
        .is_static = program_is_static(program),
        .without_kernel = !option_yes(values, "kernel-time"),
        .inverted = option_yes(values, "flame-inverted"),
        .off_cpu = option_yes(values, "off-cpu"),
        .waits_file = option_text(values, "off-cpu-out-file"),
        .waits_stacks_file = option_text(values, "off-cpu-stacks-file"),
        .all_inlined = option_given(values, "read-inline-info"),
        .out_file = option_text(values, "flame-out-file"),
        .stacks_file = option_text(values, "flame-stacks-file"),
        .folded_file = option_text(values, "flame-collapsed-file"),
    };
}

// The name of a given option that the tool does not serve yet; NULL: there is none.
static const char *unserved_option(const struct option_values *values) {
    static const char *const names[] = {"trace-children-skip", "trace-children-skip-by-arg"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (option_given(values, names[i]))
            return names[i];
    return NULL;
}

// Costs go to the function that a symbol names, as Valgrind's callgrind has it.
static void choose_counts(const struct supervisor_tool *tool, const struct option_values *values,
                          struct supervisor_request *request) {
    request->symbols.no_inlined = true;
    request->symbols.keep_unmapped = true;
    request->counts = (struct counts_settings){
        .cachegrind = strcmp(tool->name, "cachegrind") == 0,
        .separate_threads = option_yes(values, "separate-threads"),
        .combine = option_yes(values, "combine-dumps"),
        .file = option_text(values, strcmp(tool->name, "cachegrind") == 0 ? "cachegrind-out-file"
                                                                          : "callgrind-out-file"),
        // A cost has to be somewhere.
        .lines = option_yes(values, "dump-line") || !option_yes(values, "dump-instr"),
        .instructions = option_yes(values, "dump-instr"),
        .compress_strings = option_yes(values, "compress-strings"),
        .compress_positions = option_yes(values, "compress-pos"),
    };
}

static void free_findings(struct findings_settings *findings) {
    suppressions_free(findings->suppressions);
    free((char *)findings->marker_begin);
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
                                           .log = option_text(values, "ready-log"),
                                           .timeout = option_number(values, "ready-timeout"),
                                           .load = option_text(values, "load")};
    regex_t regex;
    int wrong = scenario->log ? regcomp(&regex, scenario->log, REG_EXTENDED | REG_NOSUB) : 0;
    if (wrong) {
        char reason[128];
        struct text text = {0};
        regerror(wrong, &regex, reason, sizeof reason);
        text_format(&text, "--ready-log=%s is no regular expression: %s", scenario->log, reason);
        return text_take(&text);
    }
    if (scenario->log)
        regfree(&regex);
    if (scenario->load && !scenario->log && !scenario->port)
        return base_copy("--load needs --ready-port=PORT or --ready-log=REGEX, which say when to "
                         "begin");
    return NULL;
}

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

// What of the command line does not go together; NULL: nothing. `translated`: why the engine is
// needed where the recorder would do otherwise.
static char *contradiction(enum heap_tool heap_tool, bool flame, const struct option_values *values,
                           const char *translated) {
    struct text text = {0};
    const char *unserved = flame ? unserved_option(values) : NULL;
    if (unserved)
        text_format(&text, "--%s is not supported yet by tool 'flame'", unserved);
    else if (heap_tool == HEAP_TOOL_MASSIF && option_yes(values, "pages-as-heap") &&
             option_yes(values, "stacks"))
        text_string(&text, "--pages-as-heap=yes and --stacks=yes cannot be used together");
    else if (heap_tool == HEAP_TOOL_MASSIF &&
             strcmp(option_text(values, "xtree-memory"), "full") == 0)
        text_string(&text, "--xtree-memory=full: massif does not note where memory is freed; "
                           "--tool=memcheck does, and --xtree-memory=allocs works here");
    else if (heap_tool == HEAP_TOOL_MASSIF && option_yes(values, "pages-as-heap") &&
             strcmp(option_text(values, "xtree-memory"), "none") != 0)
        text_string(&text, "--pages-as-heap=yes and --xtree-memory cannot be used together yet");
    else if (translated && heap_tool == HEAP_TOOL_DHAT)
        text_string(&text, "--mode=native is for dynamically linked programs; --mode=heap serves "
                           "all");
    else if (translated && option_given(values, "leak-check") &&
             strcmp(option_text(values, "leak-check"), "no") != 0)
        text_format(&text,
                    "--leak-check: %s.\nLeaks are searched for natively only; --tool=memcheck "
                    "searches here",
                    translated);
    return text.size ? text_take(&text) : NULL;
}

// The part of Quern that the target runs in or with.
static char *find_part(const char *name, char **problem) {
    char *path = words_part(name, X_OK);
    if (!path) {
        struct text text = {0};
        text_format(&text, "%s is missing; reinstall or rebuild Quern", name);
        *problem = text_take(&text);
    }
    return path;
}

// Fills what is left of the request from the options, and runs it.
static int run_request(const struct supervisor_tool *tool, struct option_values *values,
                       char *const *words, struct supervisor_request *request) {
    choose_log(values, &request->log);
    choose_names(values, request);
    if (request->heap.tool)
        choose_heap(tool, values, request);
    if (is_flame(tool))
        choose_flame(values, request->program, &request->flame);
    if (is_counting(tool))
        choose_counts(tool, values, request);
    if (strcmp(tool->name, "dhat") == 0 && !request->heap.tool) {
        request->dhat.file = option_text(values, "dhat-out-file");
        request->symbols.keep_unmapped = true;
    }
    request->own_words = own_words(words);
    struct run_options changes = {tool, values, request};
    request->changer = (struct option_changer){run_change_option, &changes};
    char *supp = words_part("default.supp", R_OK);
    char *error = choose_scenario(values, &request->scenario);
    if (!error)
        error = run_budgets(tool, values, request);
    if (!error)
        error = run_findings(tool, values, supp, request);
    if (error)
        fprintf(stderr, "quern: %s\n", error);
    fflush(NULL);
    int status = error ? 1 : supervisor_run(request);
    free(error);
    free(supp);
    free((void *)request->own_words);
    free_findings(&request->findings);
    suppressions_free(request->heap.leaks.suppressions);
    free((char *)request->heap.description);
    free((char *)request->flame.agent);
    return status;
}

int verb_run(const struct supervisor_tool *tool, struct option_values *values, char *const *words,
             char **argv) {
    int status = 0;
    char *problem = NULL;
    char *program = program_find(argv[0], &status, &problem);
    if (!program)
        return complain_of_program(argv[0], problem, status);
    enum heap_tool heap_tool = heap_tool_of(tool, values);
    const char *translated = engine_reason(heap_tool, values, program);
    bool preloads = heap_tool && !translated;
    char *path = NULL;
    problem = contradiction(heap_tool, is_flame(tool), values, translated);
    if (!problem)
        problem = run_files(tool, values);
    if (!problem && !is_flame(tool))
        path = find_part(preloads ? "quern-recorder.so" : "quern-engine", &problem);
    if (problem) {
        fprintf(stderr, "quern: %s\n", problem);
        free(problem);
        free(program);
        return 1;
    }
    int verbosity = (int)option_times(values, "verbose") - (option_given(values, "quiet") ? 1 : 0);
    for (size_t i = 0; verbosity >= 0 && i < values->warning_count; i++)
        fprintf(stderr, "quern: %s\n", values->warnings[i]);

    size_t count;
    char **options = engine_options(tool, values, verbosity, &count);
    bool sound = !is_counting(tool) || add_simulation(tool, values, verbosity, &options, &count);
    struct supervisor_request request = {
        .tool = tool->name,
        .tool_help = tool->help,
        .program = program,
        .argv = argv,
        .engine = preloads ? NULL : path,
        .heap = {.tool = heap_tool, .recorder = preloads ? path : NULL, .note = translated},
        .options = (const char *const *)options,
        .option_count = count,
        .log.verbosity = verbosity,
        .duration = option_number(values, "duration"),
        .silent_after_fork = option_yes(values, "child-silent-after-fork"),
        .remarks = (const char *const *)values->remarks,
        .remark_count = values->remark_count,
    };
    status = sound ? run_request(tool, values, words, &request) : 1;
    for (size_t i = 0; i < count; i++)
        free(options[i]);
    free(options);
    free(path);
    free(program);
    return status;
}
