// Whether the files that a run is to write can be written, as far as that can be told before it: a
// profile that took hours to gather should not be lost at the end for a folder that is not there.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/template.h"
#include "base/text.h"
#include "cli/run_findings.h"

// 0, or why the file cannot be written.
static int refusal(const char *path) {
    struct stat info;
    if (stat(path, &info) == 0)
        return S_ISDIR(info.st_mode) ? EISDIR : access(path, W_OK) != 0 ? errno : 0;
    if (errno != ENOENT)
        return errno;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : NULL;
    int error = access(folder ? folder : ".", W_OK | X_OK) != 0 ? errno : 0;
    free(folder);
    return error;
}

// Folders that are named after a process may be made when it is there.
static bool is_in_folder_of_process(const char *pattern) {
    const char *slash = strrchr(pattern, '/');
    const char *process = strstr(pattern, "%p"), *number = strstr(pattern, "%n");
    return slash && ((process && process < slash) || (number && number < slash));
}

char *run_files(const struct tool *tool, const struct option_values *values) {
    for (size_t i = 0; i < option_count; i++) {
        const struct option *option = &option_table[i];
        // Logs are opened at once, and have words of their own.
        if (option->type != OPTION_FILE || !option_serves(option, tool) ||
            !option_given(values, option->name) || strcmp(option->name, "log-file") == 0 ||
            strcmp(option->name, "xml-file") == 0)
            continue;
        const char *pattern = option_text(values, option->name);
        char *reason = NULL;
        char *path =
            is_in_folder_of_process(pattern) ? NULL : template_expand(pattern, 1, 1, &reason);
        int error = path ? refusal(path) : 0;
        struct text text = {0};
        if (error)
            text_format(&text, "cannot write '%s': %s; the program was not run", pattern,
                        strerror(error));
        free(path);
        free(reason);
        if (error)
            return text_take(&text);
    }
    return NULL;
}
