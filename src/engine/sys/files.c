// Files that show the engine, and the engine's own descriptors.
//
// /proc/self/exe would lead to the engine, /proc/self/maps would list it: both are answered with
// the target's own. The engine's descriptors have high numbers; closing them is refused as if they
// were not open, and a target that wants one of their numbers for itself gets it.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/memory/target.h"
#include "engine/descriptors.h"
#include "engine/process.h"
#include "engine/memory/maps.h"
#include "engine/sys/sys.h"
#include "wire/wire_target.h"

enum { PROC_MAGIC = 0x9fa0 };

static bool is_own(int fd) {
    return fd >= 0 && (fd == process.wire_fd || fd == process.config_fd || fd == process.ones_fd);
}

void files_init(void) {
    process.wire_fd = descriptor_hide(process.wire_fd);
    process.config_fd = descriptor_hide(process.config_fd);
    wire_init(process.wire_fd);
}

// The target wants this number: ours goes elsewhere.
static void make_way(int fd) {
    int *own = fd == process.wire_fd   ? &process.wire_fd
               : fd == process.ones_fd ? &process.ones_fd
                                       : &process.config_fd;
    *own = descriptor_hide_below(fd, fd - 1);
    wire_init(process.wire_fd);
}

// ---- /proc -------------------------------------------------------------------------------------

// The part of a path after /proc/self/, /proc/thread-self/, /proc/PID/ of this process; or NULL.
static const char *own_proc_entry(const char *path) {
    char number[24];
    if (strncmp(path, "/proc/", 6) != 0)
        return NULL;
    path += 6;
    snprintf(number, sizeof number, "%d/", getpid());
    const char *const prefixes[] = {"self/", "thread-self/", number};
    for (unsigned i = 0; i < 3; i++)
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0)
            return path + strlen(prefixes[i]);
    return NULL;
}

const char *files_exe_alias(const char *path) {
    const char *entry = own_proc_entry(path);
    return entry && strcmp(entry, "exe") == 0 ? process.program : NULL;
}

// Reads a path argument if it begins with /proc/: others are not worth a closer look.
static bool proc_path(uint64_t address, char path[PATH_MAX]) {
    return target_read(path, address, 6) == 0 && memcmp(path, "/proc/", 6) == 0 &&
           target_string(path, address, PATH_MAX) >= 0;
}

// The call, with a path that leads to the engine's executable led to the target's.
static long pass_with_path(long number, struct sys_arguments *args, unsigned index) {
    char path[PATH_MAX];
    const char *alias = proc_path(args->a[index], path) ? files_exe_alias(path) : NULL;
    if (alias)
        args->a[index] = (uint64_t)alias;
    return sys_pass(number, args);
}

long sys_with_path(long number, struct sys_arguments *args) {
    return pass_with_path(number, args, 0);
}

long sys_with_path_at(long number, struct sys_arguments *args) {
    return pass_with_path(number, args, 1);
}

static long open_with_path(long number, struct sys_arguments *args, unsigned index) {
    char path[PATH_MAX];
    const char *entry = proc_path(args->a[index], path) ? own_proc_entry(path) : NULL;
    if (entry && strcmp(entry, "maps") == 0)
        return maps_of_target();
    return pass_with_path(number, args, index);
}

long sys_open(long number, struct sys_arguments *args) {
    return open_with_path(number, args, 0);
}

long sys_openat(long number, struct sys_arguments *args) {
    return open_with_path(number, args, 1);
}

// The file that was given for /proc/self/maps says of itself what the real one would: the C library
// chooses the size of its buffer by that.
static bool is_maps_file(int fd) {
    struct stat status;
    char link[32], name[64];
    if (fstat(fd, &status) != 0 || status.st_nlink || !S_ISREG(status.st_mode))
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, sizeof name - 1);
    name[length < 0 ? 0 : length] = 0;
    return strcmp(name, "/memfd:" MAPS_FILE " (deleted)") == 0;
}

long sys_fstat(long number, struct sys_arguments *args) {
    if (!is_maps_file(args->a[0]))
        return sys_pass(number, args);
    struct sys_arguments real = {{(uint64_t) "/proc/self/maps", args->a[1]}};
    return sys_pass(SYS_stat, &real);
}

long sys_fstat_at(long number, struct sys_arguments *args) {
    unsigned flags = number == SYS_statx ? 2 : 3;
    char first;
    if (args->a[flags] & AT_EMPTY_PATH && target_read(&first, args->a[1], 1) == 0 && !first &&
        is_maps_file(args->a[0])) {
        args->a[1] = (uint64_t) "/proc/self/maps";
        args->a[flags] &= ~(uint64_t)AT_EMPTY_PATH;
    }
    return pass_with_path(number, args, 1);
}

static long readlink_special(long number, struct sys_arguments *args, unsigned first) {
    char path[PATH_MAX];
    const char *alias = proc_path(args->a[first], path) ? files_exe_alias(path) : NULL;
    if (!alias)
        return sys_pass(number, args);
    size_t length = strlen(alias), room = args->a[first + 2];
    if (room == 0)
        return -EINVAL;
    if (length > room)
        length = room;
    return target_write(args->a[first + 1], alias, length) ? -EFAULT : (long)length;
}

long sys_readlink(long number, struct sys_arguments *args) {
    return readlink_special(number, args, 0);
}

long sys_readlinkat(long number, struct sys_arguments *args) {
    return readlink_special(number, args, 1);
}

// ---- descriptors -------------------------------------------------------------------------------

long sys_close(long number, struct sys_arguments *args) {
    return is_own(args->a[0]) ? -EBADF : sys_pass(number, args);
}

long sys_close_range(long number, struct sys_arguments *args) {
    unsigned first = args->a[0], last = args->a[1];
    if (first > last)
        return -EINVAL;
    // Around ours: at most three holes.
    for (int hole = 0; hole < 3; hole++) {
        unsigned own = ~0u;
        const int fds[] = {process.wire_fd, process.config_fd, process.ones_fd};
        for (int i = 0; i < 3; i++)
            if (fds[i] >= 0 && (unsigned)fds[i] >= first && (unsigned)fds[i] < own)
                own = fds[i];
        if (own > last)
            break;
        struct sys_arguments part = *args;
        part.a[0] = first;
        part.a[1] = own - 1;
        if (own > first) {
            long result = sys_pass(number, &part);
            if (result < 0)
                return result;
        }
        first = own + 1;
        if (own == last)
            return 0;
    }
    struct sys_arguments rest = *args;
    rest.a[0] = first;
    return first <= last ? sys_pass(number, &rest) : 0;
}

static long duplicate(long number, struct sys_arguments *args) {
    if (is_own(args->a[0]))
        return -EBADF;
    if (is_own(args->a[1]))
        make_way(args->a[1]);
    return sys_pass(number, args);
}

long sys_dup2(long number, struct sys_arguments *args) {
    return duplicate(number, args);
}

long sys_dup3(long number, struct sys_arguments *args) {
    return duplicate(number, args);
}

static bool lists_own_fds(int fd) {
    struct statfs fs;
    char link[32], path[PATH_MAX];
    if (fstatfs(fd, &fs) != 0 || fs.f_type != PROC_MAGIC)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return false;
    path[length] = 0;
    const char *entry = own_proc_entry(path);
    return entry && (strcmp(entry, "fd") == 0 || strcmp(entry, "fdinfo") == 0);
}

// Takes the engine's descriptors out of a listing of /proc/self/fd.
long sys_getdents64(long number, struct sys_arguments *args) {
    long result = sys_pass(number, args);
    if (result <= 0 || !lists_own_fds(args->a[0]))
        return result;
    char *entries = (char *)args->a[1]; // just written by the kernel
    long kept = 0;
    for (long at = 0, size; at < result; at += size) {
        struct dirent64 *entry = (struct dirent64 *)(entries + at);
        size = entry->d_reclen;
        char *end;
        long fd = strtol(entry->d_name, &end, 10);
        if (*end == 0 && end != entry->d_name && is_own(fd))
            continue;
        memmove(entries + kept, entries + at, size);
        kept += size;
    }
    return kept;
}
