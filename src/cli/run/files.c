// Whether the files that a run is to write can be written, as far as that can be told before it: a
// profile that took hours to gather should not be lost at the end for a folder that is not there.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/template.h"
#include "base/text.h"
#include "cli/run/findings.h"

// 0, or why the file cannot be written.
static int refusal(const char *path, bool is_new) {
    struct stat info;
    if (!is_new && stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? EISDIR : access(path, W_OK) != 0 ? errno : 0;
    if (!is_new && errno != ENOENT)
        return errno;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : NULL;
    int error = access(folder ? folder : ".", W_OK | X_OK) != 0 ? errno : 0;
    free(folder);
    return error;
}

static const char *process_in(const char *pattern) {
    const char *pid = strstr(pattern, "%p"), *number = strstr(pattern, "%n");
    return !pid || (number && number < pid) ? number : pid;
}

// Folders that are named after a process may be made when it is there.
static bool is_in_folder_of_process(const char *pattern) {
    const char *slash = strrchr(pattern, '/'), *process = process_in(pattern);
    return slash && process && process < slash;
}

// Whether the file will be written: those that somebody has named, and those that the tool writes
// anyway. The others have a name as well, and an option that asks for them.
static bool is_written(const struct option *option, const struct option_values *values) {
    static const struct {
        const char *file, *asked, *no;
    } optional[] = {
        {"off-cpu-out-file", "off-cpu", "no"},
        {"off-cpu-stacks-file", "off-cpu", "no"},
        {"xtree-leak-file", "xtree-leak", "no"},
        {"xtree-memory-file", "xtree-memory", "none"},
    };
    if (option_given(values, option->name))
        return true;
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (strcmp(optional[i].file, option->name) == 0 &&
            strcmp(option_text(values, optional[i].asked), optional[i].no) == 0)
            return false;
    return option->initial != NULL;
}

static char *problem_of(const struct option *option, const struct option_values *values) {
    const char *pattern = option_text(values, option->name);
    char *reason = NULL;
    char *path = is_in_folder_of_process(pattern) ? NULL : template_expand(pattern, 1, 1, &reason);
    int error = path ? refusal(path, process_in(pattern) != NULL) : 0;
    free(path);
    free(reason);
    if (!error)
        return NULL;
    struct text text = {0};
    text_format(&text, "cannot write '%s': %s; the program was not run", pattern, strerror(error));
    if (!option_given(values, option->name))
        text_format(&text, " (--%s=FILE names another)", option->name);
    return text_take(&text);
}

char *run_files(const struct tool *tool, const struct option_values *values) {
    char *problem = NULL;
    for (size_t i = 0; i < option_count && !problem; i++) {
        const struct option *option = &option_table[i];
        // Logs are opened at once, and have words of their own.
        if (option->type == OPTION_FILE && option_serves(option, tool) &&
            strcmp(option->name, "log-file") != 0 && strcmp(option->name, "xml-file") != 0 &&
            is_written(option, values))
            problem = problem_of(option, values);
    }
    return problem;
}
