/*
 * files: the objects that processes have mapped. Each is stored once and opened when needed.
 *
 * A file is a path together with its identity: if a file is replaced and its path mapped again,
 * that is another file. Open files are chained by last use. When there are too many, or their
 * tables are too large, the least recently used are closed. A file without references is forgotten
 * when it is closed.
 *
 * Supervisor only; part of symbols.
 */
#ifndef QUERN_SYMBOLS_FILES_H
#define QUERN_SYMBOLS_FILES_H

#include "symbols/image.h"
#include "symbols/names.h"
#include "symbols/symbols.h"

struct files;

enum file_state {
    FILE_CLOSED, /* not opened yet, or closed again */
    FILE_OPEN,
    FILE_USELESS, /* not there, not ELF, replaced or damaged: never opened again */
};

struct file {
    struct file *next;          /* in the same bucket */
    struct file *newer, *older; /* by last use, while open */
    const char *path;
    struct symbols_identity identity;
    bool absent; /* did not exist when it was mapped */
    unsigned references;
    enum file_state state;
    struct image *image;
    size_t counted_bytes; /* its part of the sum of table sizes */
};

struct files *files_new(const struct symbols_options *options, struct names *names);
void files_free(struct files *files);

/* Adds a reference for the caller. identity may be NULL. Returns NULL if memory is out. */
struct file *files_get(struct files *files, const char *path,
                       const struct symbols_identity *identity);
void files_hold(struct file *file);
void files_release(struct files *files, struct file *file);

/*
 * Runs work inside a guard with the image of the file. False if there is no image, or if reading
 * it failed; a failed image is not opened again.
 */
bool files_use(struct files *files, struct file *file,
               void (*work)(struct image *image, void *context), void *context);

struct symbols_statistics files_statistics(const struct files *files);
void files_check(const struct files *files);

#endif
