#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/dhat/target/dhat.h"

struct dhat_header *dhat_header;

static int copy = -1; // for a child

static void give_up(const char *reason) {
    tool_give_up("dhat: %s", reason);
}

static int make_file(void) {
    int fd = memfd_create("quern-dhat", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || !fd_set_size(fd, DHAT_SIZE) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        give_up("cannot make a file for what it counts");
    return fd;
}

static void map_file(int fd, int fixed) {
    void *place = (void *)HEAP_NOTES;
    if (mmap(place, DHAT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | fixed, fd, 0) !=
        place)
        give_up("no room for what it counts: is the address space limited (ulimit -v)?");
    madvise(place, DHAT_SIZE, MADV_DONTDUMP);
    tool_give_file(fd);
    close(fd);
    dhat_header = (struct dhat_header *)(HEAP_NOTES + DHAT_AT_HEADER);
}

static void map_private(void *start, void *end) {
    size_t size = (size_t)((char *)end - (char *)start);
    if (mmap(start, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != start)
        give_up("no room for what it counts: is the address space limited (ulimit -v)?");
    madvise(start, size, MADV_DONTDUMP);
}

void file_start(void) {
    map_private(counters_of(heap_slot(HEAP_LEAST, 0)),
                counters_of(heap_slot(HEAP_COUNTED_MOST + 1, 0)));
    map_file(make_file(), MAP_FIXED_NOREPLACE);
    // Number 0 of everything stands for none.
    dhat_header->points = 1;
    dhat_header->stack_words = dhat_header->access_words = 1;
    dhat_header->mode = dhat_mode;
    dhat_header->magic = DHAT_MAGIC;
}

// ---- fork --------------------------------------------------------------------------------------

static void copy_part(uint64_t offset, uint64_t size) {
    const char *from = (const char *)HEAP_NOTES + offset;
    while (size > 0) {
        ssize_t done = pwrite(copy, from, size, (off_t)offset);
        if (done <= 0)
            give_up("no memory for the counts of a child");
        from += done;
        offset += (uint64_t)done;
        size -= (uint64_t)done;
    }
}

void file_forking(void) {
    copy = make_file();
    for (unsigned bits = HEAP_LEAST; bits <= HEAP_MOST; bits++)
        copy_part(dhat_at_note(bits, 0), dhat_header->notes[bits] * sizeof(struct dhat_note));
    copy_part(DHAT_AT_HEADER, sizeof *dhat_header);
    copy_part(DHAT_AT_POINTS, dhat_header->points * sizeof(struct dhat_point_counts));
    copy_part(DHAT_AT_STACKS, 8 * dhat_header->stack_words);
    copy_part(DHAT_AT_ACCESSES, 4 * dhat_header->access_words);
}

void file_fork_made(void) {
    close(copy);
    copy = -1;
}

void file_forked(void) {
    map_file(copy, MAP_FIXED);
    copy = -1;
}
