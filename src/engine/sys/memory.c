// The target's memory map.
#include <errno.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/cache/block.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/log.h"
#include "engine/memory/memory.h"
#include "engine/memory/room.h"
#include "engine/process.h"
#include "engine/translate/translate.h"
#include "engine/space/place.h"
#include "engine/report/modules.h"
#include "engine/sys/places.h"
#include "engine/sys/sys.h"
#include "engine/task.h"

enum {
    HUGE_PAGE = 2 << 20,
    ROOM_TRIES = 3, // then what is in the way stays there
};

static uint64_t page_up(uint64_t value) {
    return (value + 4095) & ~4095ul;
}

static uint64_t pick(uint64_t size, enum place place, uint64_t align) {
    return place_pick(&target_space, place, size, align);
}

static bool is_break_room(uint64_t start, uint64_t end) {
    struct space_range range;
    for (uintptr_t at = start; space_next(&target_space, &at, end, &range);)
        if (range.attributes.tag != SPACE_BRK)
            return false;
    return true;
}

// Called and left with the write lock held, but it is free in between.
static void make_room(uint64_t start, uint64_t end, int prot) {
    if (room_is_ready(start, end, prot))
        return;
    memory_unlock();
    translate_make_room(start, end, prot);
    memory_write_lock();
}

static long refuse(uint64_t start, uint64_t end) {
    static bool said;
    if (!said)
        log_notice("Warning: the program asks for memory at 0x%lx-0x%lx, where Quern has its own;",
                   start, end - 1);
    if (!said)
        log_notice("this and similar calls fail (ENOMEM).");
    said = true;
    return -ENOMEM;
}

// As the limit on data counts it.
static bool is_data(uint64_t prot, uint64_t flags) {
    return prot & PROT_WRITE && (flags & MAP_TYPE) == MAP_PRIVATE && !(flags & MAP_GROWSDOWN);
}

static struct space_attributes describe(uint64_t prot, uint64_t flags, int fd, uint64_t offset) {
    struct space_attributes attributes = {.prot = prot & 7};
    struct stat st;
    if ((flags & MAP_TYPE) != MAP_PRIVATE)
        attributes.flags |= SPACE_SHARED;
    if (flags & MAP_GROWSDOWN)
        attributes.flags |= SPACE_GROWSDOWN;
    if (flags & MAP_NORESERVE)
        attributes.flags |= SPACE_NORESERVE;
    if (!(flags & MAP_ANONYMOUS) && fstat(fd, &st) == 0) {
        attributes.flags |= SPACE_FILE;
        attributes.dev = st.st_dev;
        attributes.inode = st.st_ino;
        attributes.offset = offset;
    }
    return attributes;
}

// 0, or where it is to be mapped; a negative status. Claims the place.
static long find_place(const struct place_request *request, bool may_move) {
    uint64_t start = request->hint, end = start + request->size;
    if (!(request->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)))
        return place_choose(request, may_move);
    if (request->flags & MAP_FIXED_NOREPLACE && !place_is_unused(start, end, may_move))
        return -EEXIST;
    if (!place_is_possible(start, end))
        return end > ADDRESS_END ? -ENOMEM : refuse(start, end);
    if (!may_move && cache_takes(start, end))
        return refuse(start, end);
    int status = place_claim(start, end);
    if (status == -EEXIST && !(request->flags & MAP_FIXED_NOREPLACE))
        return refuse(start, end);
    return status ? status : (long)start;
}

// The same, when what is in the way has made room for it.
static long prepare_place(const struct place_request *request) {
    for (unsigned tries = 0;; tries++) {
        bool may_move = tries < ROOM_TRIES;
        long at = find_place(request, may_move);
        if (at < 0)
            return at;
        if (!may_move || room_is_ready(at, at + request->size, request->prot))
            return at;
        place_unclaim(at, at + request->size);
        make_room(at, at + request->size, request->prot);
    }
}

static long map_at(const struct place_request *request, uint64_t at) {
    bool fixed = request->flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
    uint64_t size = request->size, flags = request->flags & ~(MAP_FIXED_NOREPLACE | MAP_32BIT);
    int prot = space_native_prot(request->prot);
    long result =
        syscall(SYS_mmap, at, size, prot, flags | MAP_FIXED, request->fd, request->offset);
    if (result == -1 && errno == EINVAL && !fixed && !(flags & MAP_ANONYMOUS)) {
        // Some files (io_uring's rings) are only mapped where the kernel wants them.
        result = syscall(SYS_mmap, 0, size, prot, flags, request->fd, request->offset);
    }
    if (result == -1)
        return -errno;
    at = result;
    struct space_attributes attributes =
        describe(request->prot, request->flags, request->fd, request->offset);
    if (fixed)
        memory_changed(at, at + size);
    space_map(&target_space, at, at + size, &attributes);
    hooks_mapped(at, at + size, request->prot & 7);
    if (attributes.flags & SPACE_FILE && request->prot & PROT_EXEC)
        report_module(at, at + size, request->offset, request->prot, request->fd);
    return result;
}

long sys_mmap(long number, struct sys_arguments *args) {
    struct place_request request = {
        .hint = args->a[0],
        .size = page_up(args->a[1]),
        .prot = args->a[2],
        .flags = args->a[3],
        .fd = args->a[4],
        .offset = args->a[5],
    };
    bool fixed = request.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
    if (!args->a[1] || request.offset & 4095 || (fixed && request.hint & 4095))
        return -EINVAL;
    if (request.size < args->a[1] || request.size > ADDRESS_END ||
        (fixed && request.hint + request.size < request.hint))
        return -ENOMEM;
    if (request.flags & MAP_HUGETLB)
        request.size = (request.size + HUGE_PAGE - 1) & ~(uint64_t)(HUGE_PAGE - 1);
    memory_write_lock();
    long at = prepare_place(&request), result = at ? at : -ENOMEM;
    if (at > 0 || (fixed && at == 0)) {
        result = -ENOMEM;
        if (limits_permit_at(at, at + request.size, is_data(request.prot, request.flags)))
            result = map_at(&request, at);
        if (result != at)
            place_unclaim(at, at + request.size);
    }
    memory_unlock();
    return result;
}

static bool map_free_place(uint64_t at, uint64_t size, int flags) {
    struct space_attributes attributes = {.prot = PROT_READ | PROT_WRITE};
    if (mmap((void *)at, size, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | flags, -1, 0) != (void *)at)
        return false;
    if (space_map(&target_space, at, at + size, &attributes)) {
        munmap((void *)at, size);
        return false;
    }
    hooks_mapped(at, at + size, attributes.prot);
    return true;
}

uint64_t memory_map_anonymous(uint64_t size, uint64_t align) {
    memory_write_lock();
    uint64_t at = limits_permit_tool(size) ? pick(page_up(size), PLACE_DATA, align) : 0;
    if (at && !map_free_place(at, page_up(size), 0))
        at = 0;
    memory_unlock();
    return at;
}

bool memory_map_at(uint64_t start, uint64_t size) {
    memory_write_lock();
    bool done = space_is_free(&target_space, start, start + page_up(size)) &&
                map_free_place(start, page_up(size), MAP_NORESERVE);
    memory_unlock();
    return done;
}

// Natively only what the ledger knows is unmapped: the rest is not the target's.
static void unmap_range(uint64_t start, uint64_t end) {
    struct space_range range;
    for (uintptr_t at = start; space_next(&target_space, &at, end, &range);) {
        if (range.attributes.tag == SPACE_ENGINE)
            continue;
        munmap((void *)range.start, range.end - range.start);
        if (range.attributes.prot & PROT_EXEC && range.attributes.flags & SPACE_FILE)
            report_module_gone(range.start, range.end);
        memory_changed(range.start, range.end);
        space_unmap(&target_space, range.start, range.end);
        hooks_unmapped(range.start, range.end);
    }
}

void memory_unmap(uint64_t start, uint64_t size) {
    memory_write_lock();
    unmap_range(start, start + page_up(size));
    memory_unlock();
}

// As the tool has mapped it: one range that the target has left as it was.
static bool is_plain_memory(uint64_t start, uint64_t end) {
    struct space_range range;
    return space_find(&target_space, start, &range) && range.start <= start && range.end >= end &&
           range.attributes.tag == SPACE_PLAIN && !range.attributes.flags &&
           range.attributes.prot == (PROT_READ | PROT_WRITE);
}

bool memory_move_pages(uint64_t to, uint64_t from, uint64_t size) {
    memory_write_lock();
    bool done = is_plain_memory(from, from + size) && is_plain_memory(to, to + size) &&
                mremap((void *)from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
                       (void *)to) == (void *)to;
    if (done) {
        hooks_moved(to, from, size);
        hooks_mapped(from, from + size, PROT_READ | PROT_WRITE);
    }
    memory_unlock();
    return done;
}

long sys_munmap(long number, struct sys_arguments *args) {
    uint64_t start = args->a[0], end = start + page_up(args->a[1]);
    if (start & 4095 || end <= start || end > 1ul << 47)
        return -EINVAL;
    memory_write_lock();
    unmap_range(start, end);
    memory_unlock();
    return 0;
}

// Whether [start, end) has pages of a file that the target cannot execute yet.
static bool has_data_of_file(uint64_t start, uint64_t end) {
    struct space_range range;
    for (uintptr_t at = start; space_next(&target_space, &at, end, &range);)
        if (range.attributes.flags & SPACE_FILE && !(range.attributes.prot & PROT_EXEC))
            return true;
    return false;
}

// PROT_GROWSDOWN: the change begins where the mapping at `start` begins. The kernel does not know
// that the target's stack is one. Nothing grows upwards here.
static long find_grown_start(uint64_t *start, uint64_t end, uint64_t *prot) {
    struct space_range range;
    if (*prot & PROT_GROWSUP)
        return -EINVAL;
    if (!(*prot & PROT_GROWSDOWN))
        return 0;
    if (!space_find(&target_space, *start, &range) || range.start >= end)
        return -ENOMEM;
    if (!(range.attributes.flags & SPACE_GROWSDOWN))
        return -EINVAL;
    *prot &= ~(uint64_t)PROT_GROWSDOWN;
    *start = range.start;
    return 0;
}

static long protect_range(long number, uint64_t start, uint64_t end, uint64_t prot, uint64_t key) {
    long result = find_grown_start(&start, end, &prot);
    if (result)
        return result;
    if (prot & PROT_WRITE && !limits_permit_writing(start, end))
        return -ENOMEM;
    if (prot & PROT_EXEC)
        make_room(start, end, prot);
    // Behind a gap nothing is changed. It may be the engine's.
    uint64_t until = place_mapped_until(start, end);
    result = -ENOMEM;
    if (until > start) {
        uint64_t native = space_native_prot(prot & 7) | (prot & ~7ul);
        result = syscall(number, start, until - start, native, key) == 0 ? 0 : -errno;
    }
    if (until > start && (result == 0 || result == -ENOMEM)) {
        bool is_new_code = prot & PROT_EXEC && has_data_of_file(start, until);
        memory_changed(start, until);
        space_protect(&target_space, start, until, prot & 7);
        TOOL_HOOK(protected, start, until, prot & 7);
        if (result == 0 && is_new_code)
            report_modules_in(start, until);
    }
    return until < end ? -ENOMEM : result;
}

long sys_mprotect(long number, struct sys_arguments *args) {
    uint64_t start = args->a[0], end = start + page_up(args->a[1]);
    if (start & 4095 || end < start)
        return -EINVAL;
    if (end == start)
        return 0;
    memory_write_lock();
    long result = protect_range(number, start, end, args->a[2], args->a[3]);
    memory_unlock();
    return result;
}

static long move_mapping(struct sys_arguments *args, uint64_t old_size, uint64_t new_size,
                         uint64_t to) {
    uint64_t from = args->a[0], flags = args->a[3];
    long result = syscall(SYS_mremap, from, old_size, new_size,
                          (flags & MREMAP_DONTUNMAP) | MREMAP_MAYMOVE | MREMAP_FIXED, to);
    if (result == -1)
        return -errno;
    struct space_range range;
    struct space_attributes last = {0};
    uint64_t at = from, source_end = from + (old_size < new_size ? old_size : new_size);
    if (!old_size)
        source_end = from + 4096;
    memory_changed(to, to + new_size);
    memory_changed(from, from + old_size);
    space_unmap(&target_space, to, to + new_size);
    while (space_next(&target_space, &at, source_end, &range)) {
        last = range.attributes;
        space_map(&target_space, to + (range.start - from), to + (range.end - from), &last);
        last.offset += range.end - range.start;
    }
    uint64_t copied = source_end - from;
    if (!(last.flags & SPACE_FILE))
        last.offset = 0;
    if (new_size > copied)
        space_map(&target_space, to + copied, to + new_size, &last);
    hooks_moved(to, from, copied);
    hooks_mapped(to + copied, to + new_size, last.prot);
    if (!(flags & MREMAP_DONTUNMAP) && old_size)
        space_unmap(&target_space, from, from + old_size);
    if (!(flags & MREMAP_DONTUNMAP) && old_size)
        hooks_unmapped(from, from + old_size);
    return result;
}

// In one piece, as in Valgrind, only together with what is mapped alike in front of it. That is
// refused if either has been moved, since they are two mappings for the kernel then.
static uint64_t grown_with(uint64_t from) {
    struct space_range range;
    return is_in_one_piece() && space_find(&target_space, from, &range) && range.start < from
               ? from - range.start
               : 0;
}

static long resize_mapping(uint64_t from, uint64_t old_size, uint64_t new_size, uint64_t flags) {
    // What may not move grows alone where it must.
    uint64_t lead = new_size > old_size && flags & MREMAP_MAYMOVE ? grown_with(from) : 0;
    if (syscall(SYS_mremap, from - lead, lead + old_size, lead + new_size, 0, 0) == -1)
        return -errno;
    struct space_range range;
    if (new_size < old_size) {
        memory_changed(from + new_size, from + old_size);
        space_unmap(&target_space, from + new_size, from + old_size);
        hooks_unmapped(from + new_size, from + old_size);
    } else if (new_size > old_size && space_find(&target_space, from + old_size - 1, &range)) {
        struct space_attributes attributes = range.attributes;
        if (attributes.flags & SPACE_FILE)
            attributes.offset += from + old_size - range.start;
        space_map(&target_space, from + old_size, from + new_size, &attributes);
        hooks_mapped(from + old_size, from + new_size, attributes.prot);
    }
    return from;
}

// Where a mapping belongs that has to move. Apart, only code is low; in one piece it shows by its
// rights.
static enum place kind_of(uint64_t from) {
    struct space_range range;
    bool code = is_in_one_piece() ? space_find(&target_space, from, &range) &&
                                        range.start <= from && range.attributes.prot & PROT_EXEC
                                  : from < CACHE_LIMIT;
    return code ? PLACE_MODULE : PLACE_DATA;
}

static bool is_data_at(uint64_t from) {
    return space_size_in(&target_space, from & ~4095ul, (from & ~4095ul) + 4096).data;
}

static int rights_at(uint64_t address) {
    struct space_range range;
    return space_find(&target_space, address, &range) ? (int)range.attributes.prot : 0;
}

static bool can_grow(uint64_t from, uint64_t old_size, uint64_t new_size) {
    uint64_t start = from + old_size, end = from + new_size;
    return place_is_possible(start, end) && space_is_free(&target_space, start, end) &&
           room_is_ready(start, end, rights_at(from));
}

static long move_to(struct sys_arguments *args, uint64_t old_size, uint64_t new_size, uint64_t to) {
    if (to & 4095)
        return -EINVAL;
    if (!place_is_possible(to, to + new_size) || cache_takes(to, to + new_size) ||
        place_claim(to, to + new_size) != 0)
        return -ENOMEM;
    long result = move_mapping(args, old_size, new_size, to);
    if (result < 0)
        place_unclaim(to, to + new_size);
    return result;
}

static long move_anywhere(struct sys_arguments *args, uint64_t old_size, uint64_t new_size) {
    uint64_t place = pick(new_size, kind_of(args->a[0]), 4096);
    if (place && !room_is_ready(place, place + new_size, rights_at(args->a[0])))
        place = pick(new_size, PLACE_DATA, 4096);
    return place ? move_mapping(args, old_size, new_size, place) : -ENOMEM;
}

long sys_mremap(long number, struct sys_arguments *args) {
    uint64_t from = args->a[0], flags = args->a[3], to = args->a[4];
    uint64_t old_size = page_up(args->a[1]), new_size = page_up(args->a[2]);
    if (from & 4095 || !new_size || new_size > ADDRESS_END ||
        flags & ~(uint64_t)(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP))
        return -EINVAL;
    if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) && !(flags & MREMAP_MAYMOVE))
        return -EINVAL;
    memory_unwatch_all();
    memory_write_lock();
    if (flags & MREMAP_FIXED && !(to & 4095) && place_is_possible(to, to + new_size))
        make_room(to, to + new_size, rights_at(from));
    long result = -ENOMEM;
    bool must_move = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) || !old_size;
    if (from + old_size < from ||
        place_mapped_until(from, from + (old_size ? old_size : 4096)) < from + old_size) {
        result = -EFAULT;
    } else if (new_size > old_size && !limits_permit(new_size - old_size, is_data_at(from))) {
        result = -ENOMEM;
    } else if (flags & MREMAP_FIXED) {
        result = move_to(args, old_size, new_size, to);
    } else {
        if (!must_move && (new_size <= old_size || can_grow(from, old_size, new_size)))
            result = resize_mapping(from, old_size, new_size, flags);
        if (result < 0 && flags & MREMAP_MAYMOVE && (must_move || new_size > old_size))
            result = move_anywhere(args, old_size, new_size);
    }
    memory_unlock();
    return result;
}

long sys_brk(long number, struct sys_arguments *args) {
    uint64_t wanted = args->a[0];
    memory_write_lock();
    if (wanted >= process.brk_start && wanted <= process.brk_limit) {
        uint64_t old_end = page_up(process.brk), new_end = page_up(wanted);
        struct space_attributes attributes = {.tag = SPACE_BRK};
        bool done = true;
        if (new_end > old_end) {
            done =
                limits_permit(new_end - old_end, true) && is_break_room(old_end, new_end) &&
                mmap((void *)old_end, new_end - old_end, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == (void *)old_end;
            attributes.prot = PROT_READ | PROT_WRITE;
            if (done) {
                space_map(&target_space, old_end, new_end, &attributes);
                hooks_mapped(old_end, new_end, attributes.prot);
            }
        } else if (new_end < old_end) {
            munmap((void *)new_end, old_end - new_end);
            memory_changed(new_end, old_end);
            space_map(&target_space, new_end, old_end, &attributes);
            hooks_unmapped(new_end, old_end);
        }
        if (done)
            process.brk = wanted;
    }
    long result = process.brk;
    memory_unlock();
    return result;
}

static long advise(long number, uint64_t start, uint64_t end, uint64_t advice) {
    struct sys_arguments args = {{start, end - start, advice}};
    long result = sys_pass(number, &args);
    if (result == 0 && (advice == MADV_DONTNEED || advice == MADV_REMOVE))
        memory_discarded(start, end);
    return result;
}

// As the kernel: gaps are passed over, and reported at the end.
static long advise_parts(long number, uint64_t start, uint64_t end, uint64_t advice) {
    long result = 0;
    for (uint64_t at = start; at < end && result == 0;) {
        struct space_range range;
        memory_read_lock();
        bool found = space_next(&target_space, &at, end, &range);
        memory_unlock();
        if (!found)
            break;
        if (range.attributes.tag != SPACE_ENGINE)
            result = advise(number, range.start, range.end, advice);
    }
    return result ? result : -ENOMEM;
}

long sys_madvise(long number, struct sys_arguments *args) {
    uint64_t start = args->a[0], end = start + page_up(args->a[1]);
    if (start & 4095 || end <= start)
        return sys_pass(number, args);
    memory_read_lock();
    bool is_whole = place_mapped_until(start, end) == end;
    memory_unlock();
    return is_whole ? advise(number, start, end, args->a[2])
                    : advise_parts(number, start, end, args->a[2]);
}

// The kernel makes a new mapping of the same file there.
long sys_remap_file_pages(long number, struct sys_arguments *args) {
    uint64_t start = args->a[0] & ~4095ul, end = start + (args->a[1] & ~4095ul);
    struct space_range range;
    memory_write_lock();
    bool known = end > start && space_find(&target_space, start, &range) && range.start <= start;
    long result = syscall(number, args->a[0], args->a[1], args->a[2], args->a[3], args->a[4]);
    if (result == -1)
        result = -errno;
    if (result == 0 && known) {
        range.attributes.offset = args->a[3] * 4096;
        memory_changed(start, end);
        space_map(&target_space, start, end, &range.attributes);
    }
    memory_unlock();
    return result;
}

long sys_shmat(long number, struct sys_arguments *args) {
    struct shmid_ds segment;
    uint64_t at = args->a[1], flags = args->a[2];
    if (shmctl(args->a[0], IPC_STAT, &segment) != 0)
        return -errno;
    uint64_t size = page_up(segment.shm_segsz);
    memory_write_lock();
    if (at) {
        if (flags & SHM_RND)
            at &= ~4095ul;
        if (place_is_possible(at, at + size))
            make_room(at, at + size, flags & SHM_EXEC ? PROT_EXEC : PROT_READ);
    } else {
        at = pick(size, PLACE_DATA, 4096);
    }
    long result = -EINVAL;
    // Without SHM_REMAP the kernel replaces nothing; with it, it must be the target's.
    if (!limits_permit(size, false)) {
        result = -ENOMEM;
    } else if (at && place_is_possible(at, at + size) && !cache_takes(at, at + size) &&
               (!(flags & SHM_REMAP) || place_claim(at, at + size) == 0)) {
        result = syscall(SYS_shmat, args->a[0], at, flags & ~(uint64_t)SHM_EXEC);
        if (result == -1) {
            result = -errno;
            if (flags & SHM_REMAP)
                place_unclaim(at, at + size);
        } else {
            struct space_attributes attributes = {.prot = PROT_READ |
                                                          (flags & SHM_RDONLY ? 0 : PROT_WRITE) |
                                                          (flags & SHM_EXEC ? PROT_EXEC : 0),
                                                  .flags = SPACE_SHARED | SPACE_FILE,
                                                  .dev = ~0ul, // keeps neighbouring segments apart
                                                  .inode = at};
            memory_changed(at, at + size);
            space_map(&target_space, at, at + size, &attributes);
            hooks_mapped(at, at + size, attributes.prot);
        }
    }
    memory_unlock();
    return result;
}

long sys_shmdt(long number, struct sys_arguments *args) {
    struct space_range range;
    memory_write_lock();
    long result = -EINVAL;
    if (space_find(&target_space, args->a[0], &range) && range.start == args->a[0] &&
        range.attributes.dev == ~0ul) {
        result = syscall(SYS_shmdt, args->a[0]) == 0 ? 0 : -errno;
        if (result == 0) {
            memory_changed(range.start, range.end);
            space_unmap(&target_space, range.start, range.end);
            hooks_unmapped(range.start, range.end);
        }
    }
    memory_unlock();
    return result;
}
