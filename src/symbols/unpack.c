#include "symbols/unpack.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/text.h"

/* Newer headers have it. */
enum { COMPRESSED_BY_ZSTD = 2 };
/* A size that a damaged file may claim is no reason to fill the memory. */
#define SECTION_MOST (UINT64_C(4) << 30)

struct unpacking {
    int from, to;
    uint64_t end; /* of what is written */
    Elf64_Ehdr head;
    Elf64_Shdr *sections;
};

static bool read_at(int fd, void *bytes, size_t size, uint64_t offset) {
    for (char *at = bytes; size;) {
        ssize_t part = pread(fd, at, size, (off_t)offset);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return false;
        at += part;
        offset += (uint64_t)part;
        size -= (size_t)part;
    }
    return true;
}

static bool write_at(int fd, const void *bytes, size_t size, uint64_t offset) {
    for (const char *at = bytes; size;) {
        ssize_t part = pwrite(fd, at, size, (off_t)offset);
        if (part < 0 && errno == EINTR)
            continue;
        if (part <= 0)
            return false;
        at += part;
        offset += (uint64_t)part;
        size -= (size_t)part;
    }
    return true;
}

/* Whether zstd has compressed the section; its header if so. */
static bool is_packed(const struct unpacking *unpacking, const Elf64_Shdr *section,
                      Elf64_Chdr *packed) {
    return section->sh_flags & SHF_COMPRESSED && section->sh_type != SHT_NOBITS &&
           section->sh_size > sizeof *packed &&
           read_at(unpacking->from, packed, sizeof *packed, section->sh_offset) &&
           packed->ch_type == COMPRESSED_BY_ZSTD;
}

/* Reads the table of sections. False: there is none. */
static bool read_sections(struct unpacking *unpacking) {
    Elf64_Ehdr *head = &unpacking->head;
    if (!read_at(unpacking->from, head, sizeof *head, 0) ||
        memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64 ||
        head->e_ident[EI_DATA] != ELFDATA2LSB || head->e_shentsize != sizeof(Elf64_Shdr) ||
        !head->e_shnum)
        return false;
    size_t size = head->e_shnum * sizeof *unpacking->sections;
    unpacking->sections = base_allocate(size);
    return read_at(unpacking->from, unpacking->sections, size, head->e_shoff);
}

static bool has_packed(const struct unpacking *unpacking) {
    Elf64_Chdr packed;
    for (unsigned i = 0; i < unpacking->head.e_shnum; i++)
        if (is_packed(unpacking, &unpacking->sections[i], &packed))
            return true;
    return false;
}

static bool copy_file(struct unpacking *unpacking) {
    static char buffer[1 << 16];
    ssize_t size;
    while ((size = pread(unpacking->from, buffer, sizeof buffer, (off_t)unpacking->end)) > 0) {
        if (!write_at(unpacking->to, buffer, (size_t)size, unpacking->end))
            return false;
        unpacking->end += (uint64_t)size;
    }
    return size == 0;
}

/* Decompresses a section to the end of the new file. False: it is damaged. */
static bool unpack(struct unpacking *unpacking, Elf64_Shdr *section, const Elf64_Chdr *packed) {
    static char in[1 << 16], out[1 << 17];
    uint64_t at = section->sh_offset + sizeof *packed, left = section->sh_size - sizeof *packed;
    uint64_t start = (unpacking->end + 15) & ~UINT64_C(15), size = 0;
    ZSTD_DStream *stream = ZSTD_createDStream();
    bool is_fine = stream && packed->ch_size <= SECTION_MOST;
    while (is_fine && left) {
        ZSTD_inBuffer input = {in, left < sizeof in ? left : sizeof in, 0};
        is_fine = read_at(unpacking->from, in, input.size, at);
        at += input.size;
        left -= input.size;
        /* A full output buffer may not be all that the input gives. */
        for (size_t made = sizeof out; is_fine && (input.pos < input.size || made == sizeof out);) {
            ZSTD_outBuffer output = {out, sizeof out, 0};
            is_fine = !ZSTD_isError(ZSTD_decompressStream(stream, &output, &input)) &&
                      size + output.pos <= packed->ch_size &&
                      write_at(unpacking->to, out, output.pos, start + size);
            made = output.pos;
            size += made;
        }
    }
    ZSTD_freeDStream(stream);
    if (!is_fine || size != packed->ch_size)
        return false;
    section->sh_flags &= ~(Elf64_Xword)SHF_COMPRESSED;
    section->sh_offset = start;
    section->sh_size = size;
    section->sh_addralign = packed->ch_addralign;
    unpacking->end = start + size;
    return true;
}

static bool unpack_all(struct unpacking *unpacking) {
    Elf64_Chdr packed;
    const Elf64_Ehdr *head = &unpacking->head;
    if (!copy_file(unpacking))
        return false;
    /* A damaged section stays as it is: the others may be enough. */
    for (unsigned i = 0; i < head->e_shnum; i++)
        if (is_packed(unpacking, &unpacking->sections[i], &packed))
            unpack(unpacking, &unpacking->sections[i], &packed);
    return write_at(unpacking->to, unpacking->sections, head->e_shnum * sizeof(Elf64_Shdr),
                    head->e_shoff);
}

int unpack_sections(int fd) {
    struct unpacking unpacking = {.from = fd, .to = -1};
    if (fd < 0)
        return fd;
    if (read_sections(&unpacking) && has_packed(&unpacking))
        unpacking.to = memfd_create("quern-debug-sections", MFD_CLOEXEC);
    bool done = unpacking.to >= 0 && unpack_all(&unpacking);
    free(unpacking.sections);
    if (unpacking.to >= 0)
        close(done ? fd : unpacking.to);
    return done ? unpacking.to : fd;
}
