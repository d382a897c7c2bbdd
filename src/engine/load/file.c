#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/load/file.h"

bool file_open(struct file_view *file, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return false;
    file->bytes = MAP_FAILED;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        file->size = st.st_size;
        file->bytes = mmap(NULL, file->size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    close(fd);
    return file->bytes != MAP_FAILED;
}

void file_close(struct file_view *file) {
    munmap((void *)file->bytes, file->size);
}

const void *file_part(const struct file_view *file, uint64_t offset, uint64_t size) {
    return offset <= file->size && size <= file->size - offset ? file->bytes + offset : NULL;
}

bool file_code_address(const struct file_view *file, uint64_t offset, uint64_t *address) {
    const Elf64_Ehdr *header = file_part(file, 0, sizeof *header);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(Elf64_Phdr))
        return false;
    const Elf64_Phdr *segments =
        file_part(file, header->e_phoff, header->e_phnum * sizeof *segments);
    for (unsigned i = 0; segments && i < header->e_phnum; i++) {
        uint64_t first = segments[i].p_offset & ~4095ul;
        if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X && offset >= first &&
            offset < segments[i].p_offset + segments[i].p_filesz) {
            *address = (segments[i].p_vaddr & ~4095ul) + (offset - first);
            return true;
        }
    }
    return false;
}
