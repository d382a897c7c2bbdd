#include "supervisor/xtree_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/template.h"
#include "supervisor/job.h"
#include "supervisor/log.h"
#include "wire/findings.h"

_Static_assert((int)XTREE_MEMORY_EVENTS == (int)SITE_VALUES &&
                   (int)SITE_LIVE_BLOCKS < (int)XTREE_LIVE_EVENTS,
               "events are values of places");

const struct xtree_event xtree_memory_events[XTREE_MEMORY_EVENTS] = {
    [SITE_LIVE_BYTES] = {"curB", "currently allocated Bytes"},
    [SITE_LIVE_BLOCKS] = {"curBk", "currently allocated Blocks"},
    [SITE_BYTES] = {"totB", "total allocated Bytes"},
    [SITE_BLOCKS] = {"totBk", "total allocated Blocks"},
    [SITE_FREED_BYTES] = {"totFdB", "total Freed Bytes"},
    [SITE_FREED_BLOCKS] = {"totFdBk", "total Freed Blocks"},
};

char *xtree_file_command(const struct supervisor_request *request, int pid) {
    const struct followed *process = followed_find(&request->job->processes, pid);
    struct text command = {0};
    if (process && process->command)
        return base_copy(process->command);
    for (char *const *word = request->argv; *word; word++)
        text_format(&command, "%s%s", word == request->argv ? "" : " ", *word);
    return text_take(&command);
}

static bool write_file(const char *path, const struct text *content) {
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool fine = fwrite(content->bytes, 1, content->size, file) == content->size;
    return fclose(file) == 0 && fine;
}

char *xtree_file_write(const struct supervisor_request *request, int pid, const char *what,
                       const char *pattern, const struct text *content) {
    char *reason = NULL;
    char *path = template_expand(pattern, pid, 0, &reason);
    char folder[4096];
    struct log *log = request->job->log;
    struct text line = {0};
    if (!path || !write_file(path, content)) {
        log_cannot_write(log, path ? path : pattern, path ? strerror(errno) : reason);
    } else if (log_shows(log, 0)) {
        bool is_relative = path[0] != '/' && getcwd(folder, sizeof folder);
        text_format(&line, "xtree %s report: %s%s%s", what, is_relative ? folder : "",
                    is_relative ? "/" : "", path);
    }
    free(path);
    free(reason);
    return line.size ? text_take(&line) : NULL;
}

char *xtree_file_write_memory(struct xtree *tree, const struct supervisor_request *request,
                              const char *pattern) {
    struct text content = {0};
    if (strstr(pattern, ".ms"))
        xtree_write_massif(tree, log_milliseconds(request->job->log), &request->stacks, &content);
    else
        xtree_write(tree, &content);
    char *said = xtree_file_write(request, tree->pid, "memory", pattern, &content);
    text_free(&content);
    return said;
}
