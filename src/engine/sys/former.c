// Places of modules, for --keep-debuginfo=yes: old addresses keep their names only while no other
// module lies there. So a module does not go where another one has been.
#include <string.h>
#include <sys/stat.h>

#include "engine/sys/places.h"
#include "wire/wire_target.h"

enum { FORMER_MOST = 4096 };

// A file that is rewritten, or deleted and replaced by another of the same number, is another one.
struct identity {
    uint64_t device, inode, size;
    struct timespec changed;
};

struct former {
    uint64_t start, end;
    struct identity file;
};

// With the space lock held. The oldest is overwritten.
static struct former formers[FORMER_MOST];
static unsigned count, oldest;

static bool identify(int fd, struct identity *file) {
    struct stat status;
    if (fstat(fd, &status) != 0)
        return false;
    *file = (struct identity){.device = status.st_dev,
                              .inode = status.st_ino,
                              .size = (uint64_t)status.st_size,
                              .changed = status.st_ctim};
    return true;
}

static bool is_same(const struct identity *a, const struct identity *b) {
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

static const struct former *find_other(uint64_t start, uint64_t end, const struct identity *file) {
    for (unsigned i = 0; i < count; i++)
        if (formers[i].start < end && formers[i].end > start && !is_same(&formers[i].file, file))
            return &formers[i];
    return NULL;
}

static void remember(uint64_t start, uint64_t end, const struct identity *file) {
    for (unsigned i = 0; i < count; i++)
        if (formers[i].start == start && formers[i].end == end && is_same(&formers[i].file, file))
            return;
    unsigned place = count < FORMER_MOST ? count++ : oldest++ % FORMER_MOST;
    formers[place] = (struct former){start, end, *file};
}

uint64_t former_avoid(uint64_t at, uint64_t size, int fd, uint64_t (*below)(uint64_t, uint64_t)) {
    struct identity file;
    const struct former *other;
    uint64_t chosen = at;
    if (!at || !wire_option_yes("keep-debuginfo") || !identify(fd, &file))
        return at;
    while (chosen && (other = find_other(chosen, chosen + size, &file)))
        chosen = below(other->start, size);
    if (!chosen)
        chosen = at; // no room: the names of the former module are lost
    remember(chosen, chosen + size, &file);
    return chosen;
}
