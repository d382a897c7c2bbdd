#include "attach/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "attach/objects.h"
#include "base/elf_file.h"
#include "base/text.h"
#include "base/vector.h"
#include "wire/wire_attach.h"

#define PAGE        4096ull
#define LOWEST      (1ull << 32) // of the scratch: below are programs without PIE, and what Java packs
#define HIGHEST     (1ull << 47)
#define ROOM        (64ull << 20) // that is left free on both sides of the scratch
#define LIBC_MARK   "gnu_get_libc_version"
#define LOADER_MARK "_dl_allocate_tls"

struct search {
    struct place *place;
    int pid;
    size_t cave_size;
    bool has_loader, is_musl;
    uint64_t low, high; // the largest gap between two mappings
    uint64_t last_end, bias;
    char path[4096]; // of the file that is being looked at
    bool is_libc, is_loader, is_unsafe;
};

static const char *const names[PLACE_FUNCTIONS] = {"pthread_create", "pthread_detach", "dlopen",
                                                   "dlsym", "dlerror"};

// Code that runs with locks of its own held, and is called back: no thread is borrowed there.
static bool is_delicate(int fd, const char *name) {
    return object_defines(fd, "malloc") || object_defines(fd, "__libc_malloc") ||
           strncmp(name, "libgcc_s", 8) == 0 || strncmp(name, "libunwind", 9) == 0;
}

// ---- libc --------------------------------------------------------------------------------------

static void find_functions(struct search *search, int fd) {
    struct place *place = search->place;
    for (int i = 0; i < PLACE_FUNCTIONS; i++)
        if (object_function(fd, names[i], &place->functions[i]))
            place->functions[i] += search->bias;
}

// __restore_rt is no symbol, but the unwinders of the world know it by its bytes.
static void find_restorers(struct search *search, const struct maps_mapping *mapping) {
    static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
    struct borrow_map *map = &search->place->map;
    size_t size = mapping->end - mapping->start;
    uint8_t *bytes = base_allocate(size);
    struct iovec to = {bytes, size}, from = {(void *)mapping->start, size};
    ssize_t got = process_vm_readv(search->pid, &to, 1, &from, 1, 0);
    for (size_t i = 0; got > 0 && i + sizeof code <= (size_t)got; i++)
        if (memcmp(bytes + i, code, sizeof code) == 0 && map->restorer_count < BORROW_RESTORERS)
            map->restorers[map->restorer_count++] = mapping->start + i;
    free(bytes);
}

// ---- objects -----------------------------------------------------------------------------------

// The end of the code's last page, if it is large enough and mapped as code.
static void find_cave(struct search *search, int fd, const struct maps_mapping *mapping) {
    Elf64_Phdr segments[ELF_FILE_SEGMENTS];
    size_t count = elf_file_open(fd, segments);
    for (size_t i = 0; i < count && !search->place->cave; i++) {
        uint64_t end = search->bias + segments[i].p_vaddr + segments[i].p_memsz;
        uint64_t cave = (end + 15) & ~15ull, page_end = (end + PAGE - 1) & ~(PAGE - 1);
        if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_X) &&
            segments[i].p_filesz == segments[i].p_memsz && end % PAGE && end > mapping->start &&
            page_end <= mapping->end && page_end - cave >= search->cave_size)
            search->place->cave = cave;
    }
}

// The first mapping of a file.
static void begin_object(struct search *search, int fd, const struct maps_mapping *mapping) {
    Elf64_Phdr segments[ELF_FILE_SEGMENTS];
    const char *name = object_name(mapping->path);
    snprintf(search->path, sizeof search->path, "%s", mapping->path);
    search->is_libc = object_defines(fd, LIBC_MARK);
    search->is_loader = object_defines(fd, LOADER_MARK);
    search->is_unsafe = search->is_libc || is_delicate(fd, name);
    search->has_loader |= search->is_loader;
    search->is_musl |=
        !search->is_libc && object_defines(fd, "__libc_start_main") && object_defines(fd, "dlopen");
    size_t count = elf_file_open(fd, segments), first = 0;
    while (first < count && segments[first].p_type != PT_LOAD)
        first++;
    search->bias = mapping->start - mapping->offset;
    if (first < count)
        search->bias -= (segments[first].p_vaddr - segments[first].p_offset) & -PAGE;
    if (search->is_libc)
        find_functions(search, fd);
}

static void look_at(struct search *search, const struct maps_mapping *mapping) {
    struct borrow_map *map = &search->place->map;
    if (mapping->start >= HIGHEST)
        return;
    if (mapping->start > search->last_end &&
        mapping->start - search->last_end > search->high - search->low) {
        search->low = search->last_end;
        search->high = mapping->start;
    }
    if (mapping->end > search->last_end)
        search->last_end = mapping->end;
    if (mapping->path[0] != '/')
        return;
    bool is_first = strcmp(search->path, mapping->path) != 0;
    int fd = is_first || mapping->executable ? object_open(search->pid, mapping) : -1;
    if (fd < 0 && is_first)
        search->path[0] = 0;
    if (fd < 0)
        return;
    if (is_first)
        begin_object(search, fd, mapping);
    if (mapping->executable) {
        *vector_push(map->objects, map->count) = (struct borrow_object){
            .start = mapping->start,
            .end = mapping->end,
            .is_libc = search->is_libc,
            .is_loader = search->is_loader,
            .is_unsafe = search->is_unsafe || search->is_loader,
        };
        find_cave(search, fd, mapping);
        if (search->is_libc)
            find_restorers(search, mapping);
    }
    close(fd);
}

// ---- the whole ---------------------------------------------------------------------------------

static char *say_missing(const struct search *search) {
    const struct place *place = search->place;
    if (search->is_musl)
        return base_copy("it uses musl, and Quern's recorder needs glibc. "
                         "Start the program under Quern: quern heap PROGRAM");
    if (!search->has_loader)
        return base_copy("it is statically linked: it has no dynamic linker that could load the "
                         "recorder. Start the program under Quern: quern heap PROGRAM");
    for (int i = 0; i < PLACE_FUNCTIONS; i++)
        if (!place->functions[i])
            return base_copy("its libc has no dlopen and pthread_create: glibc 2.34 or later is "
                             "needed. Start the program under Quern: quern heap PROGRAM");
    if (!place->cave || search->high - search->low < 2 * ROOM + WIRE_ATTACH_SIZE)
        return base_copy("there is no room in its address space for the code that loads the "
                         "recorder");
    return NULL;
}

char *place_find(struct place *place, int pid, size_t cave_size) {
    struct search *search = base_allocate(sizeof *search);
    struct maps_reader reader;
    struct maps_mapping mapping;
    char path[64];
    *place = (struct place){0};
    *search = (struct search){.place = place, .pid = pid, .cave_size = cave_size};
    search->last_end = LOWEST;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    maps_reader_open(&reader, path);
    while (maps_reader_next(&reader, &mapping))
        look_at(search, &mapping);
    maps_reader_close(&reader);
    place->scratch = (search->low + (search->high - search->low) / 2) & -PAGE;
    char *problem = say_missing(search);
    free(search);
    return problem;
}

void place_free(struct place *place) {
    free(place->map.objects);
    *place = (struct place){0};
}
