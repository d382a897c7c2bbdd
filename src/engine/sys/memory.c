// The target's memory map.
#include <errno.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/memory/memory.h"
#include "engine/process.h"
#include "engine/translate/translate.h"
#include "engine/space/place.h"
#include "engine/report/modules.h"
#include "engine/sys/sys.h"
#include "engine/task.h"

enum { HUGE_PAGE = 2 << 20 };

#define MIDDLE_START JUMP_TABLE_END
#define MIDDLE_END   0x200000000000ul

static uint64_t page_up(uint64_t value) {
    return (value + 4095) & ~4095ul;
}

static bool inside(uint64_t start, uint64_t end, uint64_t lo, uint64_t hi) {
    return start >= lo && end <= hi && start <= end;
}

// Places where the target may have memory of its own choice.
static bool is_usual_place(uint64_t start, uint64_t end) {
    return inside(start, end, LOW_START, LOW_END) || inside(start, end, HIGH_START, HIGH_END);
}

static bool is_possible_place(uint64_t start, uint64_t end) {
    return is_usual_place(start, end) ||
           (inside(start, end, MIDDLE_START, MIDDLE_END) && !tool->shadow_distance);
}

// Whether a call about existing memory concerns the target's, wherever that lies.
static bool is_targets(uint64_t start, uint64_t end) {
    return is_possible_place(start, end) || space_is_mapped(&target_space, start, end);
}

// Modules go to the low area, so that their code is in reach of the cache: private mappings of the
// beginning of an ELF file, and whatever is executable from the start.
static bool looks_like_module(uint64_t prot, uint64_t flags, int fd, uint64_t offset) {
    char magic[4];
    if (prot & PROT_EXEC)
        return true;
    return !(flags & (MAP_ANONYMOUS | MAP_SHARED)) && offset == 0 && pread(fd, magic, 4, 0) == 4 &&
           memcmp(magic, "\177ELF", 4) == 0;
}

static uint64_t pick(uint64_t size, enum place place, uint64_t align) {
    return place_pick(&target_space, place, size, align);
}

// Whether the target sees nothing there: room that is kept for the break counts as free until the
// break grows into it.
static bool is_unused(uint64_t start, uint64_t end) {
    struct space_range range;
    for (uint64_t at = start; space_next(&target_space, &at, end, &range);)
        if (range.attributes.tag != SPACE_BRK || range.attributes.prot)
            return false;
    return true;
}

static bool is_break_room(uint64_t start, uint64_t end) {
    struct space_range range;
    for (uint64_t at = start; space_next(&target_space, &at, end, &range);)
        if (range.attributes.tag != SPACE_BRK)
            return false;
    return true;
}

static uint64_t choose_place(uint64_t hint, uint64_t size, uint64_t prot, uint64_t flags, int fd,
                             uint64_t offset) {
    hint &= ~4095ul;
    if (flags & MAP_32BIT)
        return pick(size, PLACE_LOW, 4096);
    if (hint && hint + size > hint && is_usual_place(hint, hint + size) &&
        is_unused(hint, hint + size))
        return hint;
    // Whole huge pages are aligned as the kernel aligns them, so that it can use them.
    bool huge = flags & MAP_HUGETLB ||
                (flags & MAP_ANONYMOUS && size % HUGE_PAGE == 0 && !is_in_one_piece());
    enum place place = looks_like_module(prot, flags, fd, offset) ? PLACE_MODULE : PLACE_DATA;
    uint64_t at = pick(size, place, huge ? HUGE_PAGE : 4096);
    return at ? at : pick(size, place, 4096);
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

long sys_mmap(long number, struct sys_arguments *args) {
    uint64_t hint = args->a[0], size = page_up(args->a[1]), prot = args->a[2], flags = args->a[3];
    int fd = args->a[4];
    uint64_t offset = args->a[5];
    bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
    if (!args->a[1] || offset & 4095 || (fixed && hint & 4095))
        return -EINVAL;
    if (size < args->a[1] || hint + size < hint)
        return -ENOMEM;
    if (fixed && !is_possible_place(hint, hint + size))
        return hint < LOW_START ? -EPERM : -ENOMEM;
    if (fixed && !is_usual_place(hint, hint + size))
        translate_enable_high_code();
    if (flags & MAP_HUGETLB)
        size = (size + HUGE_PAGE - 1) & ~(uint64_t)(HUGE_PAGE - 1);
    memory_write_lock();
    long result;
    if (flags & MAP_FIXED_NOREPLACE && !is_unused(hint, hint + size)) {
        result = -EEXIST;
    } else {
        uint64_t at = fixed ? hint : choose_place(hint, size, prot, flags, fd, offset);
        if (!at) {
            result = -ENOMEM;
        } else {
            uint64_t native = (flags & ~(MAP_FIXED_NOREPLACE | MAP_32BIT)) | MAP_FIXED;
            result = syscall(SYS_mmap, at, size, space_native_prot(prot), native, fd, offset);
            if (result == -1 && errno == EINVAL && !fixed && !(flags & MAP_ANONYMOUS)) {
                // Some files (io_uring's rings) are only mapped where the kernel wants them.
                native &= ~(uint64_t)MAP_FIXED;
                result = syscall(SYS_mmap, 0, size, space_native_prot(prot), native, fd, offset);
                at = result;
            }
            if (result == -1) {
                result = -errno;
            } else {
                struct space_attributes attributes = describe(prot, flags, fd, offset);
                if (fixed)
                    memory_changed(at, at + size);
                space_map(&target_space, at, at + size, &attributes);
                hooks_mapped(at, at + size, prot & 7);
                if (attributes.flags & SPACE_FILE && prot & PROT_EXEC)
                    report_module(at, at + size, offset, prot, fd);
            }
        }
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
    uint64_t at = pick(page_up(size), PLACE_DATA, align);
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
    for (uint64_t at = start; space_next(&target_space, &at, end, &range);) {
        if (range.attributes.tag == SPACE_ENGINE)
            continue;
        munmap((void *)range.start, range.end - range.start);
        if (range.attributes.prot & PROT_EXEC && range.attributes.flags & SPACE_FILE)
            report_module_gone(range.start, range.end);
    }
    memory_changed(start, end);
    space_unmap(&target_space, start, end);
    hooks_unmapped(start, end);
}

void memory_unmap(uint64_t start, uint64_t size) {
    memory_write_lock();
    unmap_range(start, start + page_up(size));
    memory_unlock();
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

long sys_mprotect(long number, struct sys_arguments *args) {
    uint64_t start = args->a[0], end = start + page_up(args->a[1]), prot = args->a[2];
    if (start & 4095 || end < start)
        return -EINVAL;
    if (end == start)
        return 0;
    if (!is_targets(start, end))
        return -ENOMEM;
    memory_write_lock();
    struct sys_arguments native = *args;
    native.a[2] = space_native_prot(prot & 7) | (prot & ~7ul);
    long result = syscall(number, native.a[0], native.a[1], native.a[2], native.a[3]);
    if (result == -1)
        result = -errno;
    if (result == 0 || result == -ENOMEM) {
        memory_changed(start, end);
        space_protect(&target_space, start, end, prot & 7);
        TOOL_HOOK(protected, start, end, prot & 7);
        if (result == 0 && prot & PROT_EXEC)
            report_modules_in(start, end);
    }
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
                                  : from < CACHE_START;
    return code ? PLACE_MODULE : PLACE_DATA;
}

static bool can_grow(uint64_t from, uint64_t old_size, uint64_t new_size) {
    return is_usual_place(from, from + new_size) &&
           space_is_free(&target_space, from + old_size, from + new_size);
}

long sys_mremap(long number, struct sys_arguments *args) {
    uint64_t from = args->a[0], flags = args->a[3], to = args->a[4];
    uint64_t old_size = page_up(args->a[1]), new_size = page_up(args->a[2]);
    if (from & 4095 || !new_size ||
        flags & ~(uint64_t)(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP))
        return -EINVAL;
    if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) && !(flags & MREMAP_MAYMOVE))
        return -EINVAL;
    if (!is_possible_place(from, from + old_size))
        return -EFAULT;
    memory_unwatch_all();
    memory_write_lock();
    long result;
    bool must_move = flags & (MREMAP_FIXED | MREMAP_DONTUNMAP) || !old_size;
    if (flags & MREMAP_FIXED) {
        if (to & 4095)
            result = -EINVAL;
        else if (!is_possible_place(to, to + new_size))
            result = -ENOMEM;
        else
            result = move_mapping(args, old_size, new_size, to);
    } else {
        result = space_is_mapped(&target_space, from, from + old_size) ? -ENOMEM : -EFAULT;
        if (!must_move && (new_size <= old_size || can_grow(from, old_size, new_size)))
            result = resize_mapping(from, old_size, new_size, flags);
        if (result < 0 && flags & MREMAP_MAYMOVE && (must_move || new_size > old_size)) {
            uint64_t place = pick(new_size, kind_of(from), 4096);
            result = place ? move_mapping(args, old_size, new_size, place) : -ENOMEM;
        }
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
                is_break_room(old_end, new_end) &&
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

long sys_madvise(long number, struct sys_arguments *args) {
    uint64_t start = args->a[0], end = start + page_up(args->a[1]);
    if (end > start && !is_targets(start, end))
        return -ENOMEM;
    long result = sys_pass(number, args);
    if (result == 0 && (args->a[2] == MADV_DONTNEED || args->a[2] == MADV_REMOVE) && end > start)
        memory_discarded(start, end);
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
    } else {
        at = pick(size, PLACE_DATA, 4096);
    }
    long result = -EINVAL;
    if (at && is_possible_place(at, at + size)) {
        result = syscall(SYS_shmat, args->a[0], at, flags & ~(uint64_t)SHM_EXEC);
        if (result == -1) {
            result = -errno;
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
