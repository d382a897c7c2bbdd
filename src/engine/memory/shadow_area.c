#include "engine/memory/shadow_area.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "engine/descriptors.h"
#include "engine/fatal.h"
#include "engine/layout.h"
#include "engine/rlimits.h"
#include "engine/process.h"
#include "engine/tool.h"

enum {
    PAGE = 4096,
    SMALL = SHADOW_SMALL,
    DISCARD_LEAST = 4 * PAGE, // less is overwritten with zeros
    PIECE_LEAST = 4 << 20,
    PIECE_MOST = 64 << 20,
    PIECES = 256,   // of a range, before pieces become larger
    NEITHER = 0x55, // zeros nor ones: where a page is shared with the engine
};

static uint64_t distance; // 0: there is no shadow

static uint64_t page_down(uint64_t value) {
    return value & ~(uint64_t)(PAGE - 1);
}

static uint64_t page_up(uint64_t value) {
    return page_down(value + PAGE - 1);
}

// What is in the way. proot, for one, loads programs in the kernel's place.
static const char *advice(uint64_t start, uint64_t end) {
    uint64_t own = (uint64_t)(uintptr_t)advice;
    return own >= start && own < end
               ? ": the engine itself is there, and the kernel has not put it there; run this "
                 "without the program that loads others (proot?), or with a tool that needs no "
                 "shadow memory"
               : rlimits_advice();
}

static void map_zeros(uint64_t start, uint64_t end, int fixed) {
    void *got = mmap((void *)start, end - start, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
    if (got != (void *)start)
        fatal("no room for shadow memory at 0x%lx%s", start, advice(start, end));
    madvise((void *)start, end - start, MADV_DONTDUMP);
}

void shadow_area_init(uint64_t wanted) {
    distance = wanted;
    if (distance)
        map_zeros(page_down(distance), page_up(SHADOWED_END + distance), MAP_FIXED_NOREPLACE);
}

void shadow_area_thread(void) {
    if (distance)
        tool_set_counters((void *)distance);
}

// ---- where the pattern file is mapped ----------------------------------------------------------
//
// A bit for each cell of shadow. Elsewhere all shadow is anonymous memory, which the kernel turns
// into zeros again when it is told that nobody needs it.

enum { CELL_BITS = 22, CELLS = 1 << (47 - CELL_BITS), WORD_BITS = 64 };

static _Atomic uint64_t patterned[CELLS / WORD_BITS];

// Bits of the cells [first, last] that one word holds.
static uint64_t bits_of(uint64_t word, uint64_t first, uint64_t last) {
    uint64_t bits = ~0ul;
    if (word == first / WORD_BITS)
        bits &= ~0ul << first % WORD_BITS;
    if (word == last / WORD_BITS)
        bits &= ~0ul >> (WORD_BITS - 1 - last % WORD_BITS);
    return bits;
}

static void mark_patterned(uint64_t start, uint64_t end) {
    uint64_t first = start >> CELL_BITS, last = (end - 1) >> CELL_BITS;
    for (uint64_t word = first / WORD_BITS; word <= last / WORD_BITS; word++)
        atomic_fetch_or(&patterned[word], bits_of(word, first, last));
}

static bool is_patterned(uint64_t start, uint64_t end) {
    uint64_t first = start >> CELL_BITS, last = (end - 1) >> CELL_BITS;
    for (uint64_t word = first / WORD_BITS; word <= last / WORD_BITS; word++)
        if (atomic_load(&patterned[word]) & bits_of(word, first, last))
            return true;
    return false;
}

// Cells that the range covers in part stay marked.
static void unmark_patterned(uint64_t start, uint64_t end) {
    uint64_t first = (start + (1ul << CELL_BITS) - 1) >> CELL_BITS, after = end >> CELL_BITS;
    if (first >= after)
        return;
    for (uint64_t word = first / WORD_BITS; word <= (after - 1) / WORD_BITS; word++)
        atomic_fetch_and(&patterned[word], ~bits_of(word, first, after - 1));
}

// ---- how many mappings there may be ------------------------------------------------------------
//
// The kernel limits the number of mappings of a process, and the target needs its share. So shadow
// is mapped only while less than half of them are in use, unless a range is so large that writing
// would cost too much. They are counted once for thousands of pieces.

enum { USUAL_LIMIT = 65530, FIRST_ALLOWANCE = 256, REFUSALS = 4096, TOO_LARGE = 64 << 20 };

static atomic_int allowance = FIRST_ALLOWANCE; // pieces to map before mappings are counted
static atomic_int refusals;                    // requests to refuse before they are counted

static long read_number(const char *path, long otherwise) {
    char text[32];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (size <= 0)
        return otherwise;
    text[size] = 0;
    return strtol(text, NULL, 10);
}

static long count_mappings(void) {
    char text[PAGE];
    long count = 0;
    ssize_t size;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    while ((size = read(fd, text, sizeof text)) > 0)
        for (ssize_t i = 0; i < size; i++)
            count += text[i] == '\n';
    close(fd);
    return count;
}

// A piece may add two mappings: itself, and the second half of the one that it divides.
static bool may_map(int pieces) {
    if (atomic_load(&refusals) > 0) {
        atomic_fetch_sub(&refusals, 1);
        return false;
    }
    if (atomic_fetch_sub(&allowance, pieces) >= pieces)
        return true;
    long left = read_number("/proc/sys/vm/max_map_count", USUAL_LIMIT) / 2 - count_mappings();
    if (left < 2 * pieces) {
        atomic_store(&refusals, REFUSALS);
        atomic_store(&allowance, 0);
        return false;
    }
    atomic_store(&allowance, (int)(left / 2) - pieces);
    return true;
}

// ---- patterns ----------------------------------------------------------------------------------
//
// A memory file has a part for each of a few values. Private mappings of it cost memory where they
// are written. Large ranges have larger pieces, so that the file grows to 1/PIECES of the largest
// range at most, and ranges of any size have few pieces. A limit on the size of files may make the
// parts smaller. Without the file, shadow is written.

enum { PARTS = 4 };

struct part {
    _Atomic unsigned value;   // plus one; 0: the part is free
    _Atomic uint64_t written; // bytes
};

static struct part parts[PARTS];
static uint64_t part_size; // 0: there is no file

static void make_file(void) {
    rlimits_lift();
    int file = memfd_create("quern-shadow", MFD_CLOEXEC);
    uint64_t size = PIECE_MOST;
    while (file >= 0 && size >= PIECE_LEAST && !fd_set_size(file, (off_t)(PARTS * size)))
        size /= 2;
    if (file >= 0 && size >= PIECE_LEAST) {
        process.shadow_fd = descriptor_hide(file);
        part_size = size;
    }
    if (file >= 0 && process.shadow_fd != file)
        close(file);
    rlimits_restore();
}

// NULL: there is none for the value.
static struct part *part_for(uint8_t value) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_file);
    for (unsigned i = 0; i < PARTS && part_size; i++) {
        unsigned found = 0;
        if (atomic_compare_exchange_strong(&parts[i].value, &found, value + 1u) ||
            found == value + 1u)
            return &parts[i];
    }
    return NULL;
}

static off_t part_offset(const struct part *part) {
    return (off_t)((part - parts) * part_size);
}

// Two threads that do this at once write the same.
static bool write_part(struct part *part, uint8_t value, uint64_t size) {
    for (uint64_t at = atomic_load(&part->written); at < size; at += PIECE_LEAST) {
        void *content = mmap(NULL, PIECE_LEAST, PROT_READ | PROT_WRITE, MAP_SHARED,
                             process.shadow_fd, part_offset(part) + (off_t)at);
        if (content == MAP_FAILED)
            return false;
        memset(content, value, PIECE_LEAST);
        munmap(content, PIECE_LEAST);
        uint64_t before = at;
        atomic_compare_exchange_strong(&part->written, &before, at + PIECE_LEAST);
    }
    return true;
}

static uint64_t piece_for(uint64_t size) {
    uint64_t piece = PIECE_LEAST;
    while (piece < part_size && piece * PIECES < size)
        piece *= 2;
    return piece;
}

// Whole pages.
static void map_pattern(uint64_t start, uint64_t end, uint8_t value) {
    struct part *part = part_for(value);
    uint64_t piece = piece_for(end - start);
    bool may = end - start >= TOO_LARGE || may_map((int)((end - start) / piece) + 1);
    if (!part || !may || !write_part(part, value, piece)) {
        memset((void *)start, value, end - start);
        return;
    }
    mark_patterned(start, end);
    for (uint64_t at = start; at < end; at += piece) {
        uint64_t size = end - at < piece ? end - at : piece;
        if (mmap((void *)at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED,
                 process.shadow_fd, part_offset(part)) == MAP_FAILED)
            memset((void *)at, value, size); // too many mappings
    }
    madvise((void *)start, end - start, MADV_DONTDUMP);
}

void shadow_area_fill(uint64_t start, uint64_t end, uint8_t value) {
    uint64_t first = start + distance, last = end + distance;
    if (end - start < SMALL) {
        memset((void *)first, value, end - start);
        return;
    }
    memset((void *)first, value, page_up(first) - first);
    memset((void *)page_down(last), value, last - page_down(last));
    map_pattern(page_up(first), page_down(last), value);
}

// ---- zeros -------------------------------------------------------------------------------------

// Whole pages. A mark that another thread sets meanwhile concerns memory of its own in the same
// cell.
static void discard(uint64_t start, uint64_t end) {
    bool plain = !is_patterned(start, end);
    if (plain && madvise((void *)start, end - start, MADV_DONTNEED) == 0)
        return; // it fails where memory is locked
    if (end - start < SMALL) {
        memset((void *)start, 0, end - start);
    } else {
        map_zeros(start, end, MAP_FIXED);
        unmark_patterned(start, end);
    }
}

static void clear(uint64_t start, uint64_t end) {
    uint64_t first = start + distance, last = end + distance;
    if (end - start < DISCARD_LEAST) {
        memset((void *)first, 0, end - start);
        return;
    }
    memset((void *)first, 0, page_up(first) - first);
    discard(page_up(first), page_down(last));
    memset((void *)page_down(last), 0, last - page_down(last));
}

static bool has_shadow(uint64_t start, uint64_t end) {
    return distance && start < end && end <= SHADOWED_END;
}

void shadow_area_clear(uint64_t start, uint64_t end) {
    if (has_shadow(start, end < SHADOWED_END ? end : SHADOWED_END))
        clear(start, end < SHADOWED_END ? end : SHADOWED_END);
}

void shadow_area_forbid(uint64_t start, uint64_t end) {
    uint64_t first = start + distance, last = end + distance;
    if (!has_shadow(start, end))
        return;
    memset((void *)first, NEITHER, page_up(first) - first);
    memset((void *)page_down(last), NEITHER, last - page_down(last));
    first = page_up(first);
    last = page_down(last);
    if (mmap((void *)first, last - first, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != (void *)first)
        fatal("no memory for shadow memory");
}

void shadow_area_permit(uint64_t start, uint64_t end) {
    uint64_t first = start + distance, last = end + distance;
    if (!has_shadow(start, end))
        return;
    memset((void *)first, 0, page_up(first) - first);
    memset((void *)page_down(last), 0, last - page_down(last));
    map_zeros(page_up(first), page_down(last), MAP_FIXED);
}

// ---- moves -------------------------------------------------------------------------------------

// Whole pages. Before Linux 6.17, the kernel refuses a range of several mappings.
static void move_pages(uint64_t to, uint64_t from, uint64_t size) {
    if (size >= SMALL) {
        void *got = mremap((void *)from, size, size,
                           MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, (void *)to);
        if (got == (void *)to)
            return;
        if (errno == EFAULT) {
            uint64_t half = page_down(size / 2);
            move_pages(to, from, half);
            move_pages(to + half, from + half, size - half);
            return;
        }
    }
    memmove((void *)to, (void *)from, size);
}

void shadow_area_move(uint64_t to, uint64_t from, uint64_t size) {
    if (!has_shadow(to, to + size) || !has_shadow(from, from + size))
        return;
    uint64_t first = from + distance, last = first + size, offset = to - from;
    if (size < SMALL || (size < TOO_LARGE && !may_map(PIECES))) {
        memmove((void *)(first + offset), (void *)first, size);
        return;
    }
    uint64_t start = page_up(first), end = page_down(last);
    memmove((void *)(first + offset), (void *)first, start - first);
    memmove((void *)(end + offset), (void *)end, last - end);
    if (is_patterned(start, end))
        mark_patterned(start + offset, end + offset);
    move_pages(start + offset, start, end - start);
    clear(from, from + size);
}
