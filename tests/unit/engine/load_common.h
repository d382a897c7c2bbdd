// What the tests of the loader share: loading with usual arguments, files made for the occasion,
// and the kernel's own answers to compare with.
#ifndef QUERN_TESTS_LOAD_COMMON_H
#define QUERN_TESTS_LOAD_COMMON_H

#include "engine/layout.h"
#include "engine/load/load.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct space space;
static struct load_result result;
static char folder[64];

static char *plain_argv[] = {"zero", "one", "", "three words here", NULL};
static char *plain_envp[] = {"A=1", "PATH=/bin", "EMPTY=", NULL};

// A test that failed leaves its program behind: the next one starts afresh.
static inline void forget(void) {
    struct space_range range;
    while (space_find(&space, 0, &range)) {
        munmap((void *)range.start, range.end - range.start);
        space_unmap(&space, range.start, range.end);
    }
}

static inline int load_with(const char *path, char **argv, char **envp, uint64_t limit) {
    struct load_request request = {
        .space = &space, .path = path, .argv = argv, .envp = envp, .stack_limit = limit};
    return load_program(&request, &result);
}

static inline int load(const char *path) {
    return load_with(path, plain_argv, plain_envp, 8 << 20);
}

// After a release or a failure nothing may be left: not in the ledger, not in the kernel's list.
static inline void check_nothing_left(void) {
    CHECK_EQ(space.count, 0);
    CHECK_STR(space_check(&space) ?: "sound", "sound");
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t start;
    bool clean = true;
    while (fscanf(maps, "%lx-%*[^\n]", &start) == 1)
        clean &= start >= CACHE_START && (start < HIGH_START || start >= HIGH_END);
    fclose(maps);
    CHECK(clean);
}

static inline void release(void) {
    load_release(&space, &result);
    check_nothing_left();
}

// A program built next to this test.
static inline const char *built(const char *name) {
    static char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    snprintf(slash + 1, path + sizeof path - slash - 1, "%s", name);
    return path;
}

static inline int remove_entry(const char *path, const struct stat *status, int kind,
                               struct FTW *ftw) {
    return remove(path);
}

static inline void remove_folder(void) {
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static inline const char *scratch(const char *name) {
    static char paths[4][128];
    static unsigned turn;
    if (!folder[0]) {
        strcpy(folder, "/tmp/quern-load-XXXXXX");
        CHECK(mkdtemp(folder));
        chmod(folder, 0755);
        atexit(remove_folder);
    }
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline const char *write_file(const char *name, const void *bytes, size_t size,
                                     mode_t mode) {
    const char *path = scratch(name);
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, bytes, size), size);
    fchmod(fd, mode);
    close(fd);
    return path;
}

static inline const char *write_text(const char *name, const char *text) {
    return write_file(name, text, strlen(text), 0755);
}

struct file {
    unsigned char *bytes;
    size_t size;
};

static inline struct file read_whole(const char *path) {
    struct file file = {0};
    FILE *stream = fopen(path, "r");
    CHECK(stream);
    fseek(stream, 0, SEEK_END);
    file.size = ftell(stream);
    rewind(stream);
    file.bytes = malloc(file.size + 1);
    CHECK_EQ(fread(file.bytes, 1, file.size, stream), file.size);
    fclose(stream);
    return file;
}

// What exec itself says: 0 or a negative errno.
static inline int native_status(const char *path) {
    int ends[2], error = 0;
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execve(path, plain_argv, plain_envp);
        error = errno;
        _exit(write(ends[1], &error, sizeof error) < 0);
    }
    close(ends[1]);
    ssize_t size = read(ends[0], &error, sizeof error);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return size == sizeof error ? -error : 0;
}

// The kernel's view of the page: its rights as PROT_*, -1 if it is not mapped.
static inline int native_rights(uintptr_t address) {
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t start, end;
    char rights[8];
    int found = -1;
    while (found < 0 && fscanf(maps, "%lx-%lx %7s%*[^\n]", &start, &end, rights) == 3)
        if (address >= start && address < end)
            found = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
                    (rights[2] == 'x' ? PROT_EXEC : 0);
    fclose(maps);
    return found;
}

#endif
