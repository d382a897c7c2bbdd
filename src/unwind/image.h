// What the unwinder must know about an ELF module: its addresses and the place of its unwind data.
//
// Words:
//   view     readable bytes together with the addresses they stand for. For a mapped module these
//            are the addresses of the bytes; for a file they are not.
//   bias     run-time address minus link-time address.
//   image    the description itself. It borrows the module's bytes and owns nothing.
//
// Nothing here trusts the module: every offset, count and size is checked against the given bytes.
// The functions neither allocate nor use libc state, so they may run in the target, also in a
// signal handler.
#ifndef QUERN_UNWIND_IMAGE_H
#define QUERN_UNWIND_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNWIND_BUILD_ID_MAX 64

struct unwind_view {
    const uint8_t *bytes;
    uint64_t address; // the address that bytes[0] stands for
    uint64_t size;
};

struct unwind_image {
    uint64_t start, end;           // span of the loaded segments, run-time addresses
    uint64_t text_start, text_end; // span of the executable ones
    uint64_t bias;
    bool mapped;               // the module is in this process, at these addresses
    struct unwind_view header; // .eh_frame_hdr to the end of its segment; size 0: there is none
    struct unwind_view frames; // the segment (or section) that .eh_frame is in; size 0: none
    uint64_t eh_frame;         // run-time address of .eh_frame, 0: none
    uint32_t build_id_size;    // 0: none
    uint8_t build_id[UNWIND_BUILD_ID_MAX];
};

// Describes a mapped module by its program headers (as dl_iterate_phdr gives them). Every segment
// must be mapped and readable where the headers say.
bool unwind_image_from_headers(struct unwind_image *image, const Elf64_Phdr *headers, size_t count,
                               uint64_t bias);

// Describes a module by the contents of its file, as if it were loaded with the given bias.
bool unwind_image_from_file(struct unwind_image *image, const void *bytes, size_t size,
                            uint64_t bias);

#endif
