#include "fleet/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vector.h"

struct entry {
    char *name;
    struct timespec time;
    uint64_t size;
};

static int by_age(const void *left, const void *right) {
    const struct entry *one = left, *other = right;
    if (one->time.tv_sec != other->time.tv_sec)
        return one->time.tv_sec < other->time.tv_sec ? -1 : 1;
    if (one->time.tv_nsec != other->time.tv_nsec)
        return one->time.tv_nsec < other->time.tv_nsec ? -1 : 1;
    return strcmp(one->name, other->name);
}

static bool is_interval(const char *name) {
    size_t size = strlen(name), end = strlen(SPOOL_END);
    return size > end && strcmp(name + size - end, SPOOL_END) == 0;
}

// The intervals, oldest first.
static struct entry *read_folder(const struct spool *spool, size_t *count) {
    struct entry *entries = NULL;
    int fd = openat(spool->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *found;
    *count = 0;
    while (folder && (found = readdir(folder))) {
        struct stat status;
        if (is_interval(found->d_name) && fstatat(fd, found->d_name, &status, 0) == 0)
            *vector_push(entries, *count) =
                (struct entry){base_copy(found->d_name), status.st_mtim, (uint64_t)status.st_size};
    }
    if (folder)
        closedir(folder);
    else if (fd >= 0)
        close(fd);
    if (*count)
        qsort(entries, *count, sizeof *entries, by_age);
    return entries;
}

static void free_entries(struct entry *entries, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(entries[i].name);
    free(entries);
}

// ---- the folder --------------------------------------------------------------------------------

static void make_folders(const char *path) {
    char *copy = base_copy(path);
    for (char *at = copy + 1; *at; at++)
        if (*at == '/') {
            *at = 0;
            mkdir(copy, 0700);
            *at = '/';
        }
    mkdir(copy, 0700);
    free(copy);
}

char *spool_open(struct spool *spool, const char *path, uint64_t most) {
    struct text problem = {0};
    make_folders(path);
    *spool = (struct spool){.path = base_copy(path),
                            .folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                            .most = most};
    if (spool->folder >= 0 && faccessat(spool->folder, ".", W_OK | X_OK, 0) == 0)
        return NULL;
    text_format(&problem,
                "cannot use the folder '%s' for intervals: %s (--push-spool=FOLDER names "
                "another)",
                path, strerror(errno));
    return text_take(&problem);
}

char *spool_default(void) {
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    struct text path = {0};
    if (state && *state == '/')
        text_format(&path, "%s/quern/spool", state);
    else if (home && *home == '/')
        text_format(&path, "%s/.local/state/quern/spool", home);
    else
        text_format(&path, "/tmp/quern-spool-%u", (unsigned)getuid());
    return text_take(&path);
}

// Removes the oldest until the rest fits beside the one of this name; the number removed.
static uint64_t make_room(struct spool *spool, const char *keep) {
    size_t count;
    uint64_t all = 0, dropped = 0;
    struct entry *entries = read_folder(spool, &count);
    for (size_t i = 0; i < count; i++)
        all += entries[i].size;
    for (size_t i = 0; i < count && all > spool->most; i++) {
        if (strcmp(entries[i].name, keep) == 0)
            continue;
        // One that somebody else removes is theirs to count.
        dropped += spool_remove(spool, entries[i].name);
        all -= entries[i].size;
    }
    free_entries(entries, count);
    return dropped;
}

char *spool_put(struct spool *spool, const struct batch *batch, uint64_t *dropped, int *error) {
    struct text name = {0};
    text_format(&name, "%016llx-%010u" SPOOL_END, (unsigned long long)batch->process,
                batch->number);
    *dropped = 0;
    *error = batch_write(batch, spool->folder, name.bytes);
    if (!*error) {
        *dropped = make_room(spool, name.bytes);
        return text_take(&name);
    }
    text_free(&name);
    return NULL;
}

bool spool_remove(struct spool *spool, const char *name) {
    return unlinkat(spool->folder, name, 0) == 0;
}

char **spool_list(const struct spool *spool, size_t *count) {
    struct entry *entries = read_folder(spool, count);
    char **names = base_allocate((*count + 1) * sizeof *names);
    for (size_t i = 0; i < *count; i++)
        names[i] = entries[i].name;
    free(entries);
    return names;
}

uint64_t spool_bytes(const struct spool *spool) {
    size_t count;
    uint64_t all = 0;
    struct entry *entries = read_folder(spool, &count);
    for (size_t i = 0; i < count; i++)
        all += entries[i].size;
    free_entries(entries, count);
    return all;
}
