// Maps one ELF file: verifies its headers, chooses its place, maps its segments.
//
// Headers come from files that may be damaged or hostile, so every number is checked before it is
// used: after survey_segments all segments lie inside one span that neither overflows nor exceeds
// the address space, and no two of them overlap.
#include "engine/load/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "engine/layout.h"

// The kernel's limit for the table of program headers.
#define HEADERS_MAX (65536 / sizeof(Elf64_Phdr))
#define ALIGN_LIMIT (1ul << 40)

// An ELF file while it is being mapped. Its headers are read with pread and not through elf_view:
// each damage has a message and an error number of its own, as execve tells them apart.
struct image {
    struct space *space;
    struct load_module *module;
    struct load_result *result;
    const char *path;
    int fd;
    enum place place;
    off_t file_size;
    Elf64_Ehdr header;
    Elf64_Phdr *segments;
    uint64_t low; // addresses of the file, whole pages
    uint64_t high;
    uint64_t align;
};

static int malformed(const struct image *image, const char *message) {
    return load_fail(image->result, LOAD_FORMAT, -ENOEXEC, image->path, message);
}

static int no_room(const struct image *image, const char *message) {
    return load_fail(image->result, LOAD_ROOM, -ENOMEM, image->path, message);
}

// ---- headers

static int read_header(struct image *image) {
    Elf64_Ehdr *header = &image->header;
    ssize_t size = pread(image->fd, header, sizeof *header, 0);
    if (size < 0)
        return load_fail(image->result, LOAD_SYSTEM, -errno, image->path, "cannot be read");
    if (size == 0)
        return malformed(image, "is empty");
    if (size < EI_NIDENT || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return malformed(image, "is neither an ELF program nor a script");
    if (header->e_ident[EI_CLASS] == ELFCLASS32)
        return load_fail(image->result, LOAD_CLASS, -ENOEXEC, image->path,
                         "is a 32-bit program; only 64-bit ones are supported");
    if (size < (ssize_t)sizeof *header || header->e_ident[EI_CLASS] != ELFCLASS64)
        return malformed(image, "has a damaged ELF header");
    if (header->e_machine != EM_X86_64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
        return load_fail(image->result, LOAD_MACHINE, -ENOEXEC, image->path,
                         "is a program for another processor than x86-64");
    if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
        return malformed(image, "is an ELF file but not a program");
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum == 0 ||
        header->e_phnum > HEADERS_MAX)
        return malformed(image, "has no usable program headers");
    return 0;
}

static int read_segments(struct image *image) {
    size_t size = image->header.e_phnum * sizeof(Elf64_Phdr);
    if (image->header.e_phoff > (uint64_t)image->file_size ||
        size > image->file_size - image->header.e_phoff)
        return malformed(image, "has program headers beyond its end");
    image->segments = malloc(size);
    if (!image->segments)
        return no_room(image, "no memory");
    if (pread(image->fd, image->segments, size, image->header.e_phoff) != (ssize_t)size)
        return malformed(image, "has unreadable program headers");
    return 0;
}

static int check_segment(const struct image *image, const Elf64_Phdr *segment) {
    if (segment->p_filesz > segment->p_memsz)
        return malformed(image, "has a segment larger in the file than in memory");
    if (segment->p_vaddr >= ADDRESS_END || segment->p_memsz > ADDRESS_END - segment->p_vaddr)
        return malformed(image, "has a segment outside the address space");
    if (segment->p_filesz == 0)
        return 0;
    if ((segment->p_vaddr ^ segment->p_offset) & (SPACE_PAGE - 1))
        return malformed(image, "has a misaligned segment");
    if (segment->p_offset > INT64_MAX - ADDRESS_END ||
        segment->p_offset + segment->p_filesz > (uint64_t)image->file_size)
        return malformed(image, "is truncated: a segment reaches beyond its end");
    return 0;
}

static bool overlap(const Elf64_Phdr *a, const Elf64_Phdr *b) {
    return a->p_vaddr < b->p_vaddr + b->p_memsz && b->p_vaddr < a->p_vaddr + a->p_memsz;
}

static bool is_loaded(const Elf64_Phdr *segment) {
    return segment->p_type == PT_LOAD && segment->p_memsz > 0;
}

static int survey_segments(struct image *image) {
    image->low = UINT64_MAX;
    image->align = SPACE_PAGE;
    for (size_t i = 0; i < image->header.e_phnum; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type == PT_GNU_STACK)
            image->module->wants_executable_stack = segment->p_flags & PF_X;
        if (segment->p_type != PT_LOAD)
            continue;
        int status = check_segment(image, segment);
        if (status < 0)
            return status;
        if (!is_loaded(segment))
            continue;
        for (size_t j = 0; j < i; j++)
            if (is_loaded(&image->segments[j]) && overlap(&image->segments[j], segment))
                return malformed(image, "has overlapping segments");
        uint64_t low = page_floor(segment->p_vaddr);
        uint64_t high = page_ceiling(segment->p_vaddr + segment->p_memsz);
        image->low = low < image->low ? low : image->low;
        image->high = high > image->high ? high : image->high;
        // As the kernel, pass over an alignment that is none.
        if (segment->p_align > image->align && !(segment->p_align & (segment->p_align - 1)))
            image->align = segment->p_align;
    }
    if (image->low >= image->high)
        return malformed(image, "has nothing to load");
    if (image->align > ALIGN_LIMIT)
        return malformed(image, "has a segment with an impossible alignment");
    return 0;
}

// The first PT_INTERP counts.
static int read_interpreter(const struct image *image, char interpreter[PATH_MAX]) {
    interpreter[0] = '\0';
    for (size_t i = 0; i < image->header.e_phnum; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (segment->p_type != PT_INTERP)
            continue;
        size_t size = segment->p_filesz;
        if (size < 2 || size > PATH_MAX || segment->p_offset > INT64_MAX - PATH_MAX ||
            pread(image->fd, interpreter, size, segment->p_offset) != (ssize_t)size ||
            interpreter[size - 1] != '\0' || interpreter[0] == '\0')
            return malformed(image, "has a damaged interpreter name");
        return 0;
    }
    return 0;
}

// ---- place

// The place of a position-independent file.
static uintptr_t pick_place(const struct image *image) {
    // The bias must be a multiple of the alignment, the first address need not be.
    uint64_t lead = image->low & (image->align - 1);
    uint64_t size = lead + (image->high - image->low);
    uintptr_t place = place_pick(image->space, image->place, size, image->align);
    return place ? place + lead : 0;
}

static int reserve_span(struct image *image) {
    struct load_module *module = image->module;
    bool fixed = image->header.e_type == ET_EXEC;
    uintptr_t start = fixed ? image->low : pick_place(image);
    size_t size = image->high - image->low;
    if (!start)
        return no_room(image, "is too large for the address space");
    if (!space_is_free(image->space, start, start + size))
        return no_room(image, "wants a fixed address that is taken");
    void *span = mmap((void *)start, size, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (span == MAP_FAILED)
        return no_room(image, errno == EEXIST ? "has no place: its address is taken by the engine"
                                              : "cannot be given memory");
    if (span != (void *)start) {
        munmap(span, size);
        return no_room(image, "has no place: its address is taken by the engine");
    }
    module->start = start;
    module->end = start + size;
    module->bias = start - image->low;
    return 0;
}

// ---- segments

static uint32_t segment_prot(const Elf64_Phdr *segment) {
    return (segment->p_flags & PF_R ? PROT_READ : 0) | (segment->p_flags & PF_W ? PROT_WRITE : 0) |
           (segment->p_flags & PF_X ? PROT_EXEC : 0);
}

static int map_piece(const struct image *image, uintptr_t start, uintptr_t end,
                     const struct space_attributes *attributes) {
    bool file = attributes->flags & SPACE_FILE;
    void *mapped = mmap((void *)start, end - start, space_native_prot(attributes->prot),
                        MAP_PRIVATE | MAP_FIXED | (file ? 0 : MAP_ANONYMOUS), file ? image->fd : -1,
                        file ? (off_t)attributes->offset : 0);
    if (mapped == MAP_FAILED || space_map(image->space, start, end, attributes) < 0)
        return no_room(image, "a segment cannot be mapped");
    return 0;
}

static int map_segment(const struct image *image, const Elf64_Phdr *segment) {
    uintptr_t start = image->module->bias + segment->p_vaddr;
    uintptr_t file_end = start + segment->p_filesz, end = start + segment->p_memsz;
    uintptr_t zero = page_floor(start);
    struct space_attributes attributes = {.prot = segment_prot(segment), .tag = SPACE_MODULE};
    if (segment->p_filesz > 0) {
        struct space_attributes file = attributes;
        file.flags = SPACE_FILE;
        file.dev = image->module->dev;
        file.inode = image->module->inode;
        file.offset = page_floor(segment->p_offset);
        zero = page_ceiling(file_end);
        int status = map_piece(image, page_floor(start), zero, &file);
        if (status < 0)
            return status;
        // To the end of the page, not of the segment: loaders use the rest as their first heap. A
        // page that cannot be written keeps what the file has there.
        if (end > file_end && (file.prot & PROT_WRITE))
            memset((void *)file_end, 0, zero - file_end);
    }
    if (page_ceiling(end) <= zero)
        return 0;
    // The kernel makes such pages writable whatever the segment says.
    attributes.prot = PROT_READ | PROT_WRITE | (attributes.prot & PROT_EXEC);
    return map_piece(image, zero, page_ceiling(end), &attributes);
}

// What lies between segments belongs to nobody.
static void free_holes(const struct image *image) {
    uintptr_t at = image->module->start, end = image->module->end;
    while (at < end) {
        struct space_range range;
        uintptr_t next = end, after = end;
        if (space_find(image->space, at, &range) && range.start < end) {
            next = range.start;
            after = range.end;
        }
        if (next > at)
            munmap((void *)at, next - at);
        at = after;
    }
}

static uintptr_t find_headers(const struct image *image) {
    uint64_t offset = image->header.e_phoff;
    for (size_t i = 0; i < image->header.e_phnum; i++) {
        const Elf64_Phdr *segment = &image->segments[i];
        if (is_loaded(segment) && offset >= segment->p_offset &&
            offset - segment->p_offset < segment->p_filesz)
            return image->module->bias + segment->p_vaddr + (offset - segment->p_offset);
    }
    return 0;
}

static int map_segments(struct image *image) {
    int status = reserve_span(image);
    for (size_t i = 0; status >= 0 && i < image->header.e_phnum; i++)
        if (is_loaded(&image->segments[i]))
            status = map_segment(image, &image->segments[i]);
    if (status < 0)
        return status;
    free_holes(image);
    image->module->entry = image->module->bias + image->header.e_entry;
    image->module->headers = find_headers(image);
    image->module->header_count = image->header.e_phnum;
    return 0;
}

static void resolve_path(struct load_module *module, int fd, const char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, module->path, sizeof module->path - 1);
    if (length > 0)
        module->path[length] = '\0';
    else if (!realpath(path, module->path))
        snprintf(module->path, sizeof module->path, "%s", path);
}

int load_module_map(struct space *space, struct load_module *module, int fd, const char *path,
                    char interpreter[PATH_MAX], enum place place, struct load_result *result) {
    struct image image = {
        .space = space, .module = module, .result = result, .path = path, .fd = fd, .place = place};
    *module = (struct load_module){0};
    struct stat file;
    if (fstat(fd, &file) != 0)
        return load_fail(result, LOAD_SYSTEM, -errno, path, "cannot be examined");
    image.file_size = file.st_size;
    module->dev = file.st_dev;
    module->inode = file.st_ino;
    resolve_path(module, fd, path);
    int status = read_header(&image);
    if (status == 0)
        status = read_segments(&image);
    if (status == 0)
        status = survey_segments(&image);
    if (status == 0)
        status = read_interpreter(&image, interpreter);
    if (status == 0)
        status = map_segments(&image);
    free(image.segments);
    if (status < 0)
        load_module_unmap(space, module);
    return status;
}

void load_module_unmap(struct space *space, struct load_module *module) {
    if (module->start == module->end)
        return;
    munmap((void *)module->start, module->end - module->start);
    space_unmap(space, module->start, module->end);
    module->start = module->end = 0;
}
