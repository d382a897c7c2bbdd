#include "symbols/files.h"

#include "base/guard.h"
#include "symbols/servers.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUCKETS = 4096, DEFAULT_OPEN_FILES = 128 };
#define DEFAULT_TABLE_BYTES ((size_t)512 << 20)

struct files {
    struct file *buckets[BUCKETS];
    struct file *newest, *oldest; /* of the open ones */
    struct names *names;
    struct servers *servers;
    struct symbols_options options;
    struct symbols_statistics statistics;
};

struct files *files_new(const struct symbols_options *options, struct names *names) {
    struct files *files = calloc(1, sizeof *files);
    if (!files)
        return NULL;
    files->options = *options;
    files->names = names;
    if (!files->options.max_open_files)
        files->options.max_open_files = DEFAULT_OPEN_FILES;
    if (!files->options.max_table_bytes)
        files->options.max_table_bytes = DEFAULT_TABLE_BYTES;
    files->servers = servers_new(&files->options);
    return files;
}

/* Paths are kept names: the pointer tells them apart. */
static struct file **bucket_of(struct files *files, const char *path) {
    return &files->buckets[(uintptr_t)path / 16 % BUCKETS];
}

/* ------------------------------------------------------------------ identity */

static struct symbols_identity identity_of(const struct stat *status) {
    return (struct symbols_identity){.device = status->st_dev,
                                     .inode = status->st_ino,
                                     .size = (uint64_t)status->st_size,
                                     .changed_seconds = status->st_mtim.tv_sec,
                                     .changed_nanoseconds = (uint32_t)status->st_mtim.tv_nsec};
}

static bool is_same(const struct symbols_identity *a, const struct symbols_identity *b) {
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed_seconds == b->changed_seconds &&
           a->changed_nanoseconds == b->changed_nanoseconds &&
           a->build_id_size == b->build_id_size &&
           !memcmp(a->build_id, b->build_id, sizeof a->build_id);
}

/* Fields of known that are 0 agree with anything. */
static bool agrees(const struct symbols_identity *known, const struct stat *status) {
    struct symbols_identity now = identity_of(status);
    return (!known->device || known->device == now.device) &&
           (!known->inode || known->inode == now.inode) &&
           (!known->size || known->size == now.size) &&
           (!known->changed_seconds || (known->changed_seconds == now.changed_seconds &&
                                        known->changed_nanoseconds == now.changed_nanoseconds));
}

/* The same build is the same code, wherever it was copied from. */
static bool has_build_id(const struct image *image, const struct symbols_identity *identity) {
    const uint8_t *bytes;
    size_t size = image_build_id(image, &bytes);
    return size == identity->build_id_size && size <= sizeof identity->build_id &&
           !memcmp(bytes, identity->build_id, size);
}

struct file *files_get(struct files *files, const char *path,
                       const struct symbols_identity *identity) {
    path = names_keep(files->names, path);
    if (!path)
        return NULL;
    struct symbols_identity own = {0};
    bool absent = false;
    if (identity) {
        own = *identity;
        if (own.build_id_size > sizeof own.build_id)
            own.build_id_size = 0;
    } else {
        struct stat status;
        absent = path[0] != '/' || stat(path, &status) < 0;
        if (!absent)
            own = identity_of(&status);
    }
    struct file **bucket = bucket_of(files, path);
    for (struct file *file = *bucket; file; file = file->next)
        if (file->path == path && file->absent == absent && is_same(&file->identity, &own)) {
            file->references++;
            return file;
        }
    struct file *file = calloc(1, sizeof *file);
    if (!file)
        return NULL;
    file->path = path;
    file->identity = own;
    file->absent = absent;
    file->references = 1;
    file->next = *bucket;
    *bucket = file;
    if (!absent)
        servers_expect(files->servers, path);
    return file;
}

/* ------------------------------------------------------------------ open and close */

static void chain(struct files *files, struct file *file) {
    file->newer = NULL;
    file->older = files->newest;
    if (files->newest)
        files->newest->newer = file;
    files->newest = file;
    if (!files->oldest)
        files->oldest = file;
}

static void unchain(struct files *files, struct file *file) {
    *(file->newer ? &file->newer->older : &files->newest) = file->older;
    *(file->older ? &file->older->newer : &files->oldest) = file->newer;
}

static void forget(struct files *files, struct file *file) {
    struct file **link = bucket_of(files, file->path);
    while (*link != file)
        link = &(*link)->next;
    *link = file->next;
    free(file);
}

static void close_image(void *image) {
    image_close(image);
}

/* Takes the file out of the open ones; its image is freed, or abandoned after a fault. */
static void shut(struct files *files, struct file *file, bool after_fault) {
    unchain(files, file);
    files->statistics.open_files--;
    files->statistics.table_bytes -= file->counted_bytes;
    file->counted_bytes = 0;
    file->state = after_fault ? FILE_USELESS : FILE_CLOSED;
    if (after_fault || !guard_run(close_image, file->image)) {
        files->statistics.faults++;
        if (after_fault)
            image_discard(file->image);
    }
    file->image = NULL;
    if (!file->references)
        forget(files, file);
}

static void keep_bounds(struct files *files) {
    while (files->statistics.open_files > files->options.max_open_files ||
           files->statistics.table_bytes > files->options.max_table_bytes) {
        if (!files->oldest)
            return;
        files->statistics.closed_files++;
        shut(files, files->oldest, false);
    }
}

static void note(struct files *files, const struct file *file, const char *what) {
    if (!files->options.note)
        return;
    char *text;
    if (asprintf(&text, "%s: %s", file->path, what) < 0)
        return;
    files->options.note(files->options.note_context, text);
    free(text);
}

struct opening {
    struct file *file;
    int fd;
    bool agreed; /* by its inode and times */
    bool is_elf, is_same;
};

static void open_image(void *context) {
    struct opening *opening = context;
    struct file *file = opening->file;
    opening->is_elf = image_open(file->image, file->path, opening->fd);
    if (opening->is_elf)
        opening->is_same = file->identity.build_id_size ? has_build_id(file->image, &file->identity)
                                                        : opening->agreed;
}

/* Why the file gives no names, or NULL if it is open now. Empty if that needs no words. */
static const char *try_to_open(struct files *files, struct file *file) {
    struct stat status;
    struct opening opening = {.file = file};
    if (file->absent || file->path[0] != '/')
        return "";
    /* Devices and pipes are not opened at all, O_NONBLOCK guards against a change in between. */
    if (stat(file->path, &status) < 0)
        return errno == ENOENT ? "the file is gone; no names are shown for it"
                               : "the file cannot be read; no names are shown for it";
    if (!S_ISREG(status.st_mode))
        return "";
    opening.fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opening.fd < 0)
        return "the file cannot be read; no names are shown for it";
    opening.agreed = fstat(opening.fd, &status) == 0 && S_ISREG(status.st_mode) &&
                     agrees(&file->identity, &status);
    if (!opening.agreed && !file->identity.build_id_size) {
        close(opening.fd);
        return "the file has been replaced since it was mapped; no names are shown for it";
    }
    file->image = image_new(&(struct image_options){
        .extra_debug_path = files->options.extra_debug_path,
        .any_checksum = files->options.any_checksum,
        .servers = files->servers,
    });
    if (!file->image) {
        close(opening.fd);
        return "";
    }
    if (!guard_run(open_image, &opening)) {
        files->statistics.faults++;
        image_discard(file->image);
        file->image = NULL;
        return "the file is damaged; no names are shown for it";
    }
    if (opening.is_elf && opening.is_same)
        return NULL;
    guard_run(close_image, file->image);
    file->image = NULL;
    return opening.is_elf
               ? "the file has been replaced since it was mapped; no names are shown for it"
               : "";
}

struct use {
    struct image *image;
    void (*work)(struct image *image, void *context);
    void *context;
};

static void run_use(void *context) {
    struct use *use = context;
    use->work(use->image, use->context);
}

bool files_use(struct files *files, struct file *file,
               void (*work)(struct image *image, void *context), void *context) {
    if (file->state == FILE_CLOSED) {
        const char *reason = try_to_open(files, file);
        if (reason) {
            file->state = FILE_USELESS;
            if (reason[0])
                note(files, file, reason);
            return false;
        }
        file->state = FILE_OPEN;
        files->statistics.opened_files++;
        files->statistics.open_files++;
        chain(files, file);
    }
    if (file->state == FILE_USELESS)
        return false;
    unchain(files, file);
    chain(files, file);
    struct use use = {.image = file->image, .work = work, .context = context};
    if (!guard_run(run_use, &use)) {
        shut(files, file, true);
        note(files, file, "the file is damaged; no names are shown for it");
        return false;
    }
    files->statistics.table_bytes += file->image->bytes - file->counted_bytes;
    file->counted_bytes = file->image->bytes;
    keep_bounds(files);
    return true;
}

/* ------------------------------------------------------------------ references */

void files_hold(struct file *file) {
    file->references++;
}

void files_release(struct files *files, struct file *file) {
    /* An open file stays, for the next process that maps it, until its turn to be closed comes. */
    if (!--file->references && file->state != FILE_OPEN)
        forget(files, file);
}

void files_free(struct files *files) {
    if (!files)
        return;
    while (files->oldest)
        shut(files, files->oldest, false);
    for (size_t i = 0; i < BUCKETS; i++) {
        struct file *next;
        for (struct file *file = files->buckets[i]; file; file = next) {
            next = file->next;
            free(file);
        }
    }
    servers_free(files->servers);
    free(files);
}

struct symbols_statistics files_statistics(const struct files *files) {
    return files->statistics;
}

void files_check(const struct files *files) {
    size_t open = 0, bytes = 0;
    for (const struct file *file = files->newest; file; file = file->older) {
        assert(file->state == FILE_OPEN && file->image);
        assert(file->older ? file->older->newer == file : files->oldest == file);
        bytes += file->counted_bytes;
        open++;
    }
    assert(open == files->statistics.open_files);
    assert(bytes == files->statistics.table_bytes);
    assert(open <= files->options.max_open_files);
    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct file *file = files->buckets[i]; file; file = file->next)
            assert(file->references || file->state == FILE_OPEN);
}
