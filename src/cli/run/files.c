// Whether the files that a run is to write can be written, as far as that can be told before it: a
// profile that took hours to gather should not be lost at the end for a folder that is not there.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/template.h"
#include "base/text.h"
#include "cli/run/run.h"

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
    if (option_given(values, option->name))
        return true;
    const struct option *asks =
        option->only_with ? option_find(option->only_with, strlen(option->only_with)) : NULL;
    if (asks && option_is(values, asks->name, asks->initial))
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

char *run_files(const struct supervisor_tool *tool, const struct option_values *values) {
    char *problem = NULL;
    for (size_t i = 0; i < values->count && !problem; i++) {
        const struct option *option = values->options[i];
        // Logs are opened at once, and have words of their own.
        if (option->type == OPTION_FILE && option_serves(option, tool) &&
            strcmp(option->name, "log-file") != 0 && strcmp(option->name, "xml-file") != 0 &&
            is_written(option, values))
            problem = problem_of(option, values);
    }
    return problem;
}
