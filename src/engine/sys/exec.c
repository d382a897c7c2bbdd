// exec: the new program is followed (started under the engine again) or runs natively.
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/debug/debug.h"
#include "engine/rlimits.h"
#include "engine/memory/target.h"
#include "engine/process.h"
#include "engine/signal/signal.h"
#include "engine/sys/sys.h"
#include "engine/task.h"
#include "wire/wire_start.h"
#include "wire/wire_target.h"

// Whether a comma-separated list has a pattern that the text matches.
static bool matches_list(const char *patterns, const char *text) {
    char pattern[PATH_MAX];
    while (patterns && *patterns) {
        size_t length = strcspn(patterns, ",");
        if (length < sizeof pattern) {
            memcpy(pattern, patterns, length);
            pattern[length] = 0;
            if (fnmatch(pattern, text, 0) == 0)
                return true;
        }
        patterns += length + (patterns[length] == ',');
    }
    return false;
}

static bool is_skipped(const char *path, char *const *argv) {
    for (const char *list = NULL; (list = wire_option_next("trace-children-skip", list));)
        if (matches_list(list, path))
            return true;
    for (const char *list = NULL; (list = wire_option_next("trace-children-skip-by-arg", list));)
        for (unsigned i = 0; argv[i]; i++)
            if (matches_list(list, argv[i]))
                return true;
    return false;
}

// Only what the engine can run, and what runs with our own rights.
static bool can_follow(int directory, const char *path, int flags) {
    unsigned char head[20];
    struct stat st;
    rlimits_lift();
    int fd = *path ? openat(directory, path, O_RDONLY | O_CLOEXEC) : dup(directory);
    rlimits_restore();
    if (fd < 0)
        return false;
    ssize_t got = pread(fd, head, sizeof head, 0);
    bool plain = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !(st.st_mode & (S_ISUID | S_ISGID));
    close(fd);
    bool elf = got == sizeof head && memcmp(head, "\177ELF\2", 5) == 0 && head[18] == 62;
    bool script = got > 2 && memcmp(head, "#!", 2) == 0;
    return plain && (elf || script) && faccessat(directory, path, X_OK, flags & AT_EMPTY_PATH) == 0;
}

// Reads a vector of string pointers. The strings stay where they are.
static char **read_vector(uint64_t address, long *error) {
    size_t count = 0, room = 64;
    char **vector = malloc((room + 1) * sizeof *vector);
    *error = 0;
    for (uint64_t string = 1; address && vector; count++) {
        if (target_read(&string, address + 8 * count, 8)) {
            *error = -EFAULT;
            break;
        }
        if (!string)
            break;
        if (count == room) {
            room *= 2;
            vector = realloc(vector, (room + 1) * sizeof *vector);
            if (!vector)
                break;
        }
        vector[count] = (char *)string;
    }
    if (!vector)
        *error = -ENOMEM;
    else
        vector[count] = NULL;
    return vector;
}

static void keep_over_exec(bool keep) {
    fcntl(process.wire_fd, F_SETFD, keep ? 0 : FD_CLOEXEC);
    fcntl(process.config_fd, F_SETFD, keep ? 0 : FD_CLOEXEC);
}

// A sandbox may hide the engine's file (another root, a file system mounted over it). The link in
// /proc leads to it all the same.
static long exec_engine(const char *engine, char **line) {
    char *no_environment[] = {NULL};
    execve(engine, line, no_environment);
    if (errno == ENOENT || errno == ENOTDIR || errno == EACCES)
        execve("/proc/self/exe", line, no_environment);
    return -errno;
}

static long exec_followed(const char *path, char **argv, char **envp) {
    const char *engine = wire_option("engine-path");
    struct wire_start start = {.wire = process.wire_fd,
                               .config = process.config_fd,
                               .path = path,
                               .argv = argv,
                               .envp = envp};
    memcpy(start.limits, self->limits->of, sizeof start.limits);
    struct wire_start_line line = {.vector = malloc(wire_start_size(argv, envp) * sizeof *argv)};
    if (!line.vector)
        return -ENOMEM;
    wire_start_write(&line, engine, &start);
    keep_over_exec(true);
    rlimits_lift();
    debug_before_exec();
    signal_prepare_exec();
    long result = exec_engine(engine, line.vector);
    rlimits_restore();
    free(line.vector);
    keep_over_exec(false);
    signal_restore_mask();
    wire_send_hello(getpid(), getppid(), process.program, NULL);
    return result;
}

static long exec_away(int directory, const char *path, char **argv, char **envp, int flags,
                      enum wire_away reason) {
    debug_before_exec();
    if (faccessat(directory, path, X_OK, flags & AT_EMPTY_PATH) == 0)
        wire_send_exec_away(reason, path);
    signal_prepare_exec();
    rlimits_give();
    syscall(SYS_execveat, directory, path, argv, envp, flags);
    long result = -errno;
    rlimits_take_back();
    signal_restore_mask();
    wire_send_hello(getpid(), getppid(), process.program, NULL);
    return result;
}

// The path of an open file, if it still leads to that file.
static bool path_of_descriptor(int fd, char path[PATH_MAX]) {
    char link[32];
    struct stat opened, found;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = 0;
    if (length > 0 && fstat(fd, &opened) == 0 && stat(path, &found) == 0 &&
        opened.st_dev == found.st_dev && opened.st_ino == found.st_ino)
        return true;
    path[0] = 0;
    return false;
}

static long do_exec(int directory, uint64_t path_address, uint64_t argv_address,
                    uint64_t envp_address, int flags) {
    char path[PATH_MAX + 1];
    long length = target_string(path, path_address, sizeof path);
    if (length < 0 || length == PATH_MAX)
        return length < 0 ? -EFAULT : -ENAMETOOLONG;
    const char *alias = files_exe_alias(path);
    if (alias)
        snprintf(path, sizeof path, "%s", alias);
    long error;
    char **argv = read_vector(argv_address, &error);
    char **envp = error ? NULL : read_vector(envp_address, &error);
    if (!error) {
        char *no_arguments[] = {(char *)"", NULL};
        bool simple = directory == AT_FDCWD || path[0] == '/';
        if (flags & AT_EMPTY_PATH && !path[0] && path_of_descriptor(directory, path)) {
            directory = AT_FDCWD;
            flags = 0;
            simple = true;
        }
        bool possible = simple && argv[0] && !flags && can_follow(directory, path, flags);
        bool skipped = is_skipped(path, argv), asked = wire_option_yes("trace-children");
        if (possible && asked && !skipped)
            error = exec_followed(path, argv, envp);
        else
            error = exec_away(directory, path, argv[0] ? argv : no_arguments, envp, flags,
                              !asked    ? WIRE_AWAY_NOT_ASKED
                              : skipped ? WIRE_AWAY_SKIPPED
                                        : WIRE_AWAY_IMPOSSIBLE);
    }
    free(argv);
    free(envp);
    return error;
}

long sys_execve(long number, struct sys_arguments *args) {
    return do_exec(AT_FDCWD, args->a[0], args->a[1], args->a[2], 0);
}

long sys_execveat(long number, struct sys_arguments *args) {
    return do_exec(args->a[0], args->a[1], args->a[2], args->a[3], args->a[4]);
}
