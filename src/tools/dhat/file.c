#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/dhat/dhat.h"

struct dhat_header *dhat_header;

static int copy = -1; // for a child

static void give_up(const char *reason) {
    tool_say("dhat: %s", reason);
    _exit(1);
}

static int make_file(void) {
    int fd = memfd_create("quern-dhat", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, DHAT_SIZE) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        give_up("cannot make a file for what it counts");
    return fd;
}

static void map_file(int fd, int fixed) {
    void *place = (void *)TOOL_HEAP_NOTES;
    if (mmap(place, DHAT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | fixed, fd, 0) !=
        place)
        give_up("no room for what it counts: is the address space limited (ulimit -v)?");
    madvise(place, DHAT_SIZE, MADV_DONTDUMP);
    tool_give_file(fd);
    close(fd);
    dhat_header = (struct dhat_header *)(TOOL_HEAP_NOTES + DHAT_AT_HEADER);
}

static void map_private(uint64_t start, uint64_t size) {
    if (mmap((void *)start, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
             0) != (void *)start)
        give_up("no room for what it counts: is the address space limited (ulimit -v)?");
    madvise((void *)start, size, MADV_DONTDUMP);
}

void file_start(void) {
    uint64_t heap = TOOL_HEAP_END - TOOL_HEAP_START;
    map_private(TOOL_HEAP_SMALL_MAP, (TOOL_HEAP_LARGE - TOOL_HEAP_START) / 4);
    map_private(TOOL_HEAP_COUNTERS, 2 * heap);
    map_file(make_file(), MAP_FIXED_NOREPLACE);
    // Number 0 of everything stands for none.
    dhat_header->note_units = DHAT_NOTE;
    dhat_header->points = 1;
    dhat_header->stack_words = dhat_header->access_words = 1;
    dhat_header->mode = dhat_mode;
    dhat_header->magic = DHAT_MAGIC;
}

// ---- fork --------------------------------------------------------------------------------------

static void copy_part(uint64_t offset, uint64_t size) {
    const char *from = (const char *)TOOL_HEAP_NOTES + offset;
    while (size > 0) {
        ssize_t done = pwrite(copy, from, size, (off_t)offset);
        if (done <= 0)
            give_up("no memory for the counts of a child");
        from += done;
        offset += (uint64_t)done;
        size -= (uint64_t)done;
    }
}

// The map of large blocks is sparse, and most of it is holes.
static void copy_holey(uint64_t start, uint64_t size) {
    enum { PAGE = 4096 };
    static const char zeros[PAGE];
    for (uint64_t at = start; at < start + size; at += PAGE)
        if (memcmp((const char *)TOOL_HEAP_NOTES + at, zeros, PAGE) != 0)
            copy_part(at, PAGE);
}

void file_forking(void) {
    copy = make_file();
    copy_part(DHAT_AT_NOTES, 8 * dhat_header->note_units);
    copy_holey(TOOL_HEAP_LARGE_MAP - TOOL_HEAP_NOTES, (slots_large_used() / 1024 + 4095) & ~4095ul);
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
