#include "engine/memory/shadow_area.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/descriptors.h"
#include "engine/fatal.h"
#include "engine/layout.h"
#include "engine/process.h"
#include "engine/tool.h"

enum {
    PAGE = 4096,
    SMALL = 64 * 1024, // less is written rather than mapped
    ONES = 4 << 20,    // size of the file of ones
    NEITHER = 0x55,    // zeros nor ones: where a page is shared with the engine
};

static uint64_t distance; // 0: there is no shadow

static uint64_t page_down(uint64_t value) {
    return value & ~(uint64_t)(PAGE - 1);
}

static uint64_t page_up(uint64_t value) {
    return page_down(value + PAGE - 1);
}

static void map_zeros(uint64_t start, uint64_t end, int fixed) {
    void *got = mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
    if (got != (void *)start)
        fatal("no room for shadow memory at 0x%lx: is the address space limited (ulimit -v)?",
              start);
    madvise((void *)start, end - start, MADV_DONTDUMP);
}

static void make_ones(void) {
    static const uint64_t word = ~0ul;
    int ones = memfd_create("quern-ones", MFD_CLOEXEC);
    if (ones < 0 || !fd_set_size(ones, ONES))
        fatal("no memory file for shadow memory");
    uint64_t *content = mmap(NULL, ONES, PROT_READ | PROT_WRITE, MAP_SHARED, ones, 0);
    if (content == MAP_FAILED)
        fatal("no memory for shadow memory");
    for (size_t i = 0; i < ONES / sizeof word; i++)
        content[i] = word;
    munmap(content, ONES);
    process.ones_fd = descriptor_hide(ones);
}

void shadow_area_init(uint64_t wanted) {
    uint64_t end = wanted + CACHE_START;
    distance = wanted;
    if (!distance)
        return;
    map_zeros(page_down(distance), page_up(end), MAP_FIXED_NOREPLACE);
    memset((void *)end, NEITHER, page_up(end) - end);
    map_zeros(page_down(HIGH_START + distance), page_up(HIGH_END + distance), MAP_FIXED_NOREPLACE);
}

void shadow_area_thread(void) {
    if (distance)
        tool_set_counters((void *)distance);
}

static void clear(uint64_t start, uint64_t end) {
    uint64_t first = start + distance, last = end + distance;
    if (end - start < SMALL) {
        memset((void *)first, 0, end - start);
        return;
    }
    memset((void *)first, 0, page_up(first) - first);
    map_zeros(page_up(first), page_down(last), MAP_FIXED);
    memset((void *)page_down(last), 0, last - page_down(last));
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

void shadow_area_clear(uint64_t start, uint64_t end) {
    if (!distance)
        return;
    if (start < CACHE_START && end > LOW_START)
        clear(most(start, LOW_START), least(end, CACHE_START));
    if (start < HIGH_END && end > HIGH_START)
        clear(most(start, HIGH_START), least(end, HIGH_END));
}

void shadow_area_move(uint64_t to, uint64_t from, uint64_t size) {
    if (distance)
        memmove((void *)(to + distance), (void *)(from + distance), size);
}

void shadow_area_fill(uint64_t start, uint64_t end) {
    uint64_t first = start + distance, last = end + distance;
    if (end - start < SMALL) {
        memset((void *)first, 0xff, end - start);
        return;
    }
    memset((void *)first, 0xff, page_up(first) - first);
    memset((void *)page_down(last), 0xff, last - page_down(last));
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_ones);
    last = page_down(last);
    for (first = page_up(first); first < last;) {
        uint64_t size = last - first < ONES ? last - first : ONES;
        void *got = mmap((void *)first, size, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, process.ones_fd, 0);
        if (got == MAP_FAILED)
            memset((void *)first, 0xff, size); // too many mappings
        else
            madvise(got, size, MADV_DONTDUMP);
        first += size;
    }
}
