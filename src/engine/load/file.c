#include "engine/load/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool file_open(struct elf_view *view, const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return false;
    void *bytes = MAP_FAILED;
    if (fstat(fd, &st) == 0 && st.st_size > 0)
        bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return false;
    if (elf_view_open(view, bytes, (uint64_t)st.st_size))
        return true;
    munmap(bytes, (size_t)st.st_size);
    return false;
}

void file_close(struct elf_view *view) {
    munmap((void *)view->bytes, view->size);
}
