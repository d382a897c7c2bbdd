// Files that show the engine, and the engine's own descriptors.
//
// /proc/self/exe would lead to the engine, /proc/self/maps would list it: both are answered with
// the target's own. The engine's descriptors have high numbers; closing them is refused as if they
// were not open, and a target that wants one of their numbers for itself gets it.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
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
#include "engine/task.h"
#include "wire/wire_target.h"

enum { PROC_MAGIC = 0x9fa0 };

enum { OWN = 4 };
static int *const own[OWN] = {&process.wire_fd, &process.config_fd, &process.shadow_fd,
                              &process.debug_fd};

// The place where the engine keeps this descriptor; NULL: it is the target's.
static int *find_own(int fd) {
    for (int i = 0; fd >= 0 && i < OWN; i++)
        if (*own[i] == fd)
            return own[i];
    return NULL;
}

static bool is_own(int fd) {
    return process_owns_descriptor(fd);
}

// A vfork child has descriptors of its own, but the numbers here are its parent's.
void files_hide(void) {
    for (int i = 0; i < OWN && !self->is_borrowed; i++) {
        int before = *own[i];
        if (before < 0)
            continue;
        *own[i] = descriptor_hide(before);
        wire_init(process.wire_fd);
        if (*own[i] != before)
            close(before);
    }
}

// The target wants this number, and is about to get it: ours goes elsewhere.
static void make_way(int fd) {
    *find_own(fd) = descriptor_duplicate_below(fd);
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
    if (number == SYS_faccessat2 && args->a[3] & AT_SYMLINK_NOFOLLOW)
        return sys_pass(number, args);
    return pass_with_path(number, args, 1);
}

// ---- opening -----------------------------------------------------------------------------------

// What the calls that open files have in common.
struct opening {
    int directory;
    unsigned path; // index of the argument
    uint64_t flags, resolve;
};

// A link of /proc is followed to its end, and from the root.
static bool follows_links(const struct opening *opening) {
    return !(opening->flags & O_NOFOLLOW) && !(opening->resolve & ~(uint64_t)RESOLVE_CACHED);
}

// Nobody writes to a program that is being executed. For the kernel that is the engine.
static bool is_busy(const struct opening *opening, uint64_t path) {
    uint64_t access = opening->flags & O_ACCMODE;
    bool writes = access == O_WRONLY || access == O_RDWR || opening->flags & O_TRUNC;
    bool makes_new = (opening->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
    int follow = opening->flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
    struct stat found;
    return writes && !makes_new && !(opening->flags & (O_PATH | O_DIRECTORY)) &&
           syscall(SYS_newfstatat, opening->directory, path, &found, follow) == 0 &&
           found.st_ino == process.inode && found.st_dev == process.dev &&
           faccessat(opening->directory, (const char *)path, W_OK, AT_EACCESS) == 0;
}

static long open_file(long number, struct sys_arguments *args, const struct opening *opening) {
    char path[PATH_MAX];
    uint64_t *address = &args->a[opening->path];
    bool special = proc_path(*address, path) && follows_links(opening);
    const char *entry = special ? own_proc_entry(path) : NULL;
    if (entry && strcmp(entry, "maps") == 0)
        return maps_of_target();
    if (entry && strcmp(entry, "limits") == 0)
        return limits_of_target();
    if (entry && strcmp(entry, "exe") == 0)
        *address = (uint64_t)process.program;
    return is_busy(opening, *address) ? -ETXTBSY : sys_pass(number, args);
}

long sys_open(long number, struct sys_arguments *args) {
    uint64_t flags = number == SYS_open ? args->a[1] : O_WRONLY | O_CREAT | O_TRUNC;
    return open_file(number, args, &(struct opening){.directory = AT_FDCWD, .flags = flags});
}

long sys_openat(long number, struct sys_arguments *args) {
    return open_file(number, args,
                     &(struct opening){.directory = args->a[0], .path = 1, .flags = args->a[2]});
}

long sys_openat2(long number, struct sys_arguments *args) {
    struct open_how how;
    if (args->a[3] < sizeof how || target_read(&how, args->a[2], sizeof how))
        return sys_pass(number, args);
    return open_file(
        number, args,
        &(struct opening){
            .directory = args->a[0], .path = 1, .flags = how.flags, .resolve = how.resolve});
}

long sys_truncate(long number, struct sys_arguments *args) {
    struct opening opening = {.directory = AT_FDCWD, .flags = O_WRONLY};
    return is_busy(&opening, args->a[0]) ? -ETXTBSY : pass_with_path(number, args, 0);
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
    return args->a[flags] & AT_SYMLINK_NOFOLLOW ? sys_pass(number, args)
                                                : pass_with_path(number, args, 1);
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
    // Around ours, each of which is a hole.
    for (int hole = 0; hole < OWN; hole++) {
        unsigned kept = ~0u;
        for (int i = 0; i < OWN; i++)
            if (*own[i] >= 0 && (unsigned)*own[i] >= first && (unsigned)*own[i] < kept)
                kept = *own[i];
        if (kept > last)
            break;
        struct sys_arguments part = *args;
        part.a[0] = first;
        part.a[1] = kept - 1;
        if (kept > first) {
            long result = sys_pass(number, &part);
            if (result < 0)
                return result;
        }
        first = kept + 1;
        if (kept == last)
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
