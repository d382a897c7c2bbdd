// From a path to the ELF file that is really run: `#!` lines, resolved as the kernel does.
#include "engine/load/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

// The kernel looks at this much of a file only.
#define HEAD_SIZE 256
// Scripts whose interpreter is a script: this many in a row.
#define SCRIPTS_MAX 5

// An open that failed: is it only the right to read that is missing?
static int open_failure(const char *path, int error, struct load_result *result) {
    if (error == EACCES && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0)
        return load_fail(result, LOAD_UNREADABLE, -EACCES, path,
                         "may be executed but not read: it cannot be translated");
    if (error == ENOENT || error == ENOTDIR)
        return load_fail(result, LOAD_NOT_FOUND, -error, path, "no such file");
    if (error == EACCES)
        return load_fail(result, LOAD_FORBIDDEN, -error, path, "permission denied");
    return load_fail(result, LOAD_SYSTEM, -error, path, "cannot be opened");
}

int load_open(const char *path, struct load_result *result) {
    // Non-blocking, or a pipe of that name would make us wait for a writer.
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return open_failure(path, errno, result);
    struct stat status;
    struct statvfs file_system;
    const char *message = NULL;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        message = "is not a regular file";
    else if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) != 0)
        message = "may not be executed";
    else if (fstatvfs(fd, &file_system) == 0 && (file_system.f_flag & ST_NOEXEC))
        message = "lies on a file system from which nothing may be executed";
    if (!message)
        return fd;
    close(fd);
    return load_fail(result, LOAD_FORBIDDEN, -EACCES, path, message);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

// The first byte behind the blanks (the word) at `at`; NULL if they reach beyond `last`.
static char *skip_blanks(char *at, const char *last) {
    while (at <= last && is_blank(*at))
        at++;
    return at <= last ? at : NULL;
}

static char *skip_word(char *at, const char *last) {
    while (at <= last && *at && !is_blank(*at))
        at++;
    return at <= last ? at : NULL;
}

// Cuts the line after #! into the interpreter and its one optional argument, which is all the rest
// of the line. False if the line names no interpreter, or not all of its name. The head is padded
// with zeros; blanks at the end of a last line without newline are an argument or belong to it.
static bool parse_head(char head[HEAD_SIZE], char **interpreter, char **argument) {
    char *last = head + HEAD_SIZE - 1, *end = memchr(head, '\n', HEAD_SIZE);
    if (!end) {
        char *name = skip_blanks(head + 2, last);
        if (!name || !skip_word(name, last))
            return false;
        end = last;
    }
    while (is_blank(end[-1]))
        end--;
    *interpreter = skip_blanks(head + 2, end);
    if (!*interpreter || *interpreter == end)
        return false;
    char *word_end = skip_word(*interpreter, end);
    *argument = word_end && *word_end ? skip_blanks(word_end, end) : NULL;
    *end = '\0';
    if (word_end)
        *word_end = '\0';
    return true;
}

// argv[0] makes way for interpreter, argument and the script's path.
static bool prepend(struct load_plan *plan, const char *interpreter, const char *argument,
                    const char *script) {
    const char *front[3] = {interpreter, argument ? argument : script, argument ? script : NULL};
    size_t count = argument ? 3 : 2;
    char **argv = calloc(plan->argc + count, sizeof *argv);
    if (!argv)
        return false;
    bool complete = true;
    for (size_t i = 0; i < count; i++)
        complete &= (argv[i] = strdup(front[i])) != NULL;
    memcpy(argv + count, plan->argv + 1, plan->argc * sizeof *argv);
    // Of what the plan had made itself, only the first string is lost.
    size_t made = plan->made ? plan->made - 1 + count : count;
    if (plan->made)
        free(plan->argv[0]);
    free(plan->argv);
    plan->argv = argv;
    plan->argc += count - 1;
    plan->made = made;
    return complete;
}

static int no_memory(const char *path, struct load_result *result) {
    return load_fail(result, LOAD_ROOM, -ENOMEM, path, "no memory");
}

// Takes over plan->path, which is a script with this head: 1, or 0 if it is none, or a status.
static int step_through_script(struct load_plan *plan, struct load_result *result) {
    char head[HEAD_SIZE] = {0};
    ssize_t size = pread(plan->fd, head, HEAD_SIZE, 0);
    if (size < 0)
        return load_fail(result, LOAD_SYSTEM, -errno, plan->path, "cannot be read");
    if (size < 2 || memcmp(head, "#!", 2) != 0)
        return 0;
    char *interpreter, *argument;
    if (!parse_head(head, &interpreter, &argument))
        return load_fail(result, LOAD_FORMAT, -ENOEXEC, plan->path,
                         "names no interpreter after #!");
    if (!prepend(plan, interpreter, argument, plan->path))
        return no_memory(plan->path, result);
    snprintf(plan->path, sizeof plan->path, "%s", interpreter);
    close(plan->fd);
    plan->fd = -1;
    // A zero byte in place of a name: the kernel then tries to execute a folder.
    if (!*interpreter)
        return load_fail(result, LOAD_FORMAT, -EACCES, plan->argv[argument ? 2 : 1],
                         "names no interpreter after #!");
    plan->fd = load_open(plan->path, result);
    return plan->fd < 0 ? plan->fd : 1;
}

static bool copy_arguments(struct load_plan *plan, char *const *argv) {
    while (argv && argv[plan->argc])
        plan->argc++;
    // A program is never started without argv[0].
    bool empty = plan->argc == 0;
    plan->argc += empty;
    plan->argv = calloc(plan->argc + 1, sizeof *plan->argv);
    if (!plan->argv)
        return false;
    if (!empty) {
        memcpy(plan->argv, argv, plan->argc * sizeof *argv);
        return true;
    }
    plan->argv[0] = strdup("");
    plan->made = 1;
    return plan->argv[0];
}

int load_plan_make(struct load_plan *plan, const char *path, char *const *argv,
                   struct load_result *result) {
    *plan = (struct load_plan){.fd = -1};
    if (strlen(path) >= sizeof plan->path)
        return load_fail(result, LOAD_NOT_FOUND, -ENAMETOOLONG, path, "name too long");
    snprintf(plan->path, sizeof plan->path, "%s", path);
    int status;
    if (!copy_arguments(plan, argv)) {
        status = no_memory(path, result);
        goto failed;
    }
    status = plan->fd = load_open(path, result);
    for (int scripts = 0; status >= 0; scripts++) {
        status = step_through_script(plan, result);
        if (status == 0)
            return 0;
        if (status > 0 && scripts == SCRIPTS_MAX)
            status = load_fail(result, LOAD_FORMAT, -ELOOP, path, "too many nested scripts");
    }
failed:
    load_plan_free(plan);
    return status;
}

void load_plan_free(struct load_plan *plan) {
    if (plan->fd >= 0)
        close(plan->fd);
    for (size_t i = 0; i < plan->made; i++)
        free(plan->argv[i]);
    free(plan->argv);
    *plan = (struct load_plan){.fd = -1};
}
