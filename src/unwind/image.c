#include "unwind/image.h"

#include "base/elf_view.h"
#include "unwind/cursor.h"

// Where a segment's bytes are: in a file at its offset, in memory at its address.
struct source {
    const uint8_t *bytes; // file contents, or NULL for a mapped module
    uint64_t size;
    uint64_t bias;
};

static bool segment_view(const struct source *source, const Elf64_Phdr *header,
                         struct unwind_view *view) {
    view->address = header->p_vaddr + source->bias;
    view->size = header->p_filesz;
    if (!source->bytes) {
        view->bytes = (const uint8_t *)view->address;
        return header->p_vaddr + header->p_filesz >= header->p_vaddr;
    }
    if (header->p_offset > source->size || header->p_filesz > source->size - header->p_offset)
        return false;
    view->bytes = source->bytes + header->p_offset;
    return true;
}

// The bytes from an address to the end of the loaded segment that holds it.
static bool view_from(const struct source *source, const Elf64_Phdr *headers, size_t count,
                      uint64_t address, struct unwind_view *view) {
    for (size_t i = 0; i < count; i++) {
        struct unwind_view segment;
        if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_R) ||
            !segment_view(source, &headers[i], &segment))
            continue;
        if (address < segment.address || address - segment.address >= segment.size)
            continue;
        uint64_t offset = address - segment.address;
        *view = (struct unwind_view){segment.bytes + offset, address, segment.size - offset};
        return true;
    }
    return false;
}

static void read_build_id(struct unwind_image *image, const struct unwind_view *notes) {
    struct elf_note note;
    if (!elf_view_build_id(notes->bytes, notes->size, &note) || note.size > sizeof image->build_id)
        return;
    memcpy(image->build_id, note.content, note.size);
    image->build_id_size = note.size;
}

// .eh_frame_hdr says where .eh_frame begins, but not where it ends: the end of the segment and the
// terminator bound it.
static void find_frames(struct unwind_image *image, const struct source *source,
                        const Elf64_Phdr *headers, size_t count, uint64_t header_address) {
    if (!view_from(source, headers, count, header_address, &image->header))
        return;
    struct cursor cursor = cursor_at(&image->header, header_address, image->header.size);
    uint8_t version = cursor_u8(&cursor);
    uint8_t pointer_encoding = cursor_u8(&cursor);
    cursor_skip(&cursor, 2);
    uint64_t eh_frame = cursor_pointer(&cursor, pointer_encoding, header_address);
    if (cursor.failed || version != 1 ||
        !view_from(source, headers, count, eh_frame, &image->frames)) {
        image->header.size = 0;
        return;
    }
    image->eh_frame = eh_frame;
}

static bool describe(struct unwind_image *image, const struct source *source,
                     const Elf64_Phdr *headers, size_t count) {
    *image = (struct unwind_image){.start = UINT64_MAX,
                                   .text_start = UINT64_MAX,
                                   .bias = source->bias,
                                   .mapped = !source->bytes};
    for (size_t i = 0; i < count; i++) {
        const Elf64_Phdr *header = &headers[i];
        if (header->p_type != PT_LOAD || header->p_memsz == 0)
            continue;
        uint64_t start = header->p_vaddr + source->bias;
        uint64_t end = start + header->p_memsz;
        if (end < start)
            return false;
        if (start < image->start)
            image->start = start;
        if (end > image->end)
            image->end = end;
        if ((header->p_flags & PF_X) && start < image->text_start)
            image->text_start = start;
        if ((header->p_flags & PF_X) && end > image->text_end)
            image->text_end = end;
    }
    if (image->start >= image->end)
        return false;
    for (size_t i = 0; i < count; i++) {
        struct unwind_view notes;
        if (headers[i].p_type == PT_GNU_EH_FRAME && !image->eh_frame)
            find_frames(image, source, headers, count, headers[i].p_vaddr + source->bias);
        else if (headers[i].p_type == PT_NOTE && !image->build_id_size &&
                 view_from(source, headers, count, headers[i].p_vaddr + source->bias, &notes)) {
            if (notes.size > headers[i].p_filesz)
                notes.size = headers[i].p_filesz;
            read_build_id(image, &notes);
        }
    }
    return true;
}

bool unwind_image_from_headers(struct unwind_image *image, const Elf64_Phdr *headers, size_t count,
                               uint64_t bias) {
    struct source source = {.bias = bias};
    return describe(image, &source, headers, count);
}

// A module without .eh_frame_hdr may still name .eh_frame in its section headers.
static void find_section(struct unwind_image *image, const struct elf_view *elf, uint64_t bias) {
    Elf64_Shdr section;
    if (elf_view_find_section(elf, ".eh_frame", &section) == elf->section_count ||
        !(section.sh_flags & SHF_ALLOC) || !elf_view_contents(elf, &section))
        return;
    image->eh_frame = section.sh_addr + bias;
    image->frames =
        (struct unwind_view){elf_view_contents(elf, &section), image->eh_frame, section.sh_size};
}

bool unwind_image_from_file(struct unwind_image *image, const void *bytes, size_t size,
                            uint64_t bias) {
    struct source source = {bytes, size, bias};
    struct elf_view elf;
    // The headers are used where they are: they must be aligned.
    if (!elf_view_open(&elf, bytes, size) || !elf.segment_count ||
        (elf.header.e_type != ET_EXEC && elf.header.e_type != ET_DYN) ||
        elf.header.e_phoff % _Alignof(Elf64_Phdr) != 0)
        return false;
    const Elf64_Phdr *headers =
        elf_view_part(&elf, elf.header.e_phoff, elf.segment_count * sizeof *headers);
    if (!describe(image, &source, headers, elf.segment_count))
        return false;
    if (!image->eh_frame)
        find_section(image, &elf, bias);
    return true;
}
