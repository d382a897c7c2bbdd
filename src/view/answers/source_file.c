#include "view/answers/source_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/heap/file.h"

#define SOURCE_MOST (16 << 20)

static bool is_source_name(const char *path) {
    static const char *const endings[] = {
        "c",   "h",   "cc", "hh", "cpp", "hpp",   "cxx", "hxx", "c++", "h++", "tcc", "ipp", "inl",
        "inc", "def", "s",  "S",  "asm", "rs",    "go",  "f",   "f90", "F",   "F90", "d",   "zig",
        "y",   "l",   "m",  "mm", "nim", "swift", "adb", "ads", "pas", "ml",  "hs",  "cu",  "C",
    };
    const char *dot = strrchr(heap_file_base(path), '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot + 1, endings[i]) == 0)
            return true;
    return false;
}

FILE *source_file_open(const char *path) {
    struct stat status;
    if (!is_source_name(path))
        return NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    FILE *file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= SOURCE_MOST
                     ? fdopen(fd, "r")
                     : NULL;
    if (!file)
        close(fd);
    return file;
}

bool source_file_line(FILE *file, char **text, size_t *room) {
    ssize_t size = getline(text, room, file);
    while (size > 0 && ((*text)[size - 1] == '\n' || (*text)[size - 1] == '\r'))
        (*text)[--size] = 0;
    return size >= 0;
}

bool source_file_is_newer(const char *path, const char *document) {
    struct stat file, profile;
    return stat(path, &file) == 0 && stat(document, &profile) == 0 &&
           file.st_mtime > profile.st_mtime;
}
