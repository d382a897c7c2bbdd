// Opening the running program: nobody may write to it. And links of /proc that are not to be
// followed.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include "stress.h"

static void try_open(const char *what, const char *path, int flags) {
    errno = 0;
    int fd = open(path, flags, 0644);
    printf("%s, flags %o: %d, errno %d\n", what, flags, fd >= 0, errno);
    if (fd >= 0)
        close(fd);
}

static void try_openat2(const char *path, uint64_t flags, uint64_t resolve) {
    struct open_how how = {.flags = flags, .resolve = resolve};
    errno = 0;
    long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    printf("openat2, flags %lo, resolve %lx: %d, errno %d\n", flags, resolve, fd >= 0, errno);
    if (fd >= 0)
        close((int)fd);
}

int main(int argc, char **argv) {
    static const int flags[] = {O_RDONLY,
                                O_WRONLY,
                                O_RDWR,
                                O_RDONLY | O_TRUNC,
                                O_WRONLY | O_TRUNC,
                                O_WRONLY | O_CREAT,
                                O_WRONLY | O_CREAT | O_EXCL,
                                O_RDWR | O_APPEND,
                                O_WRONLY | O_DIRECTORY,
                                O_PATH | O_WRONLY};
    char path[4096] = "", other[] = "copy-XXXXXX";
    struct stat before, after, link;
    CHECK(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    CHECK(stat(path, &before) == 0);
    CHECK(open(path, O_RDWR) < 0); // before anything that would empty the file
    unlink("link");
    CHECK(symlink(path, "link") == 0);
    for (unsigned i = 0; i < LENGTH(flags); i++) {
        try_open("program", path, flags[i]);
        try_open("link", "link", flags[i]);
        try_open("proc", "/proc/self/exe", flags[i]);
        try_open("link itself", "link", flags[i] | O_NOFOLLOW);
        try_open("proc itself", "/proc/self/exe", flags[i] | O_NOFOLLOW);
        try_openat2("/proc/self/exe", flags[i], 0);
        try_openat2("/proc/self/exe", flags[i], RESOLVE_NO_MAGICLINKS);
        try_openat2("/proc/self/exe", flags[i], RESOLVE_NO_SYMLINKS);
        try_openat2(path, flags[i], RESOLVE_NO_MAGICLINKS);
    }
    errno = 0;
    int created = creat(path, 0644), error = errno;
    printf("creat: %d, errno %d\n", created, error);
    int cut = truncate(path, 0);
    error = errno;
    printf("truncate: %d, errno %d\n", cut, error);
    CHECK(unlink("link") == 0);
    CHECK(stat(path, &after) == 0 && after.st_size == before.st_size);
    CHECK(lstat("/proc/self/exe", &link) == 0 && S_ISLNK(link.st_mode));
    CHECK(fstatat(AT_FDCWD, "/proc/self/exe", &link, AT_SYMLINK_NOFOLLOW) == 0 &&
          S_ISLNK(link.st_mode));
    CHECK(stat("/proc/self/exe", &link) == 0 && link.st_ino == before.st_ino);
    // Another file may be written to.
    int fd = mkstemp(other);
    CHECK(fd >= 0 && truncate(other, 10) == 0 && unlink(other) == 0);
    // A forked child runs the same program.
    int child = fork();
    if (child == 0)
        _exit(open(path, O_RDWR) < 0 && errno == ETXTBSY ? 4 : 5);
    printf("child: %x\n", stress_wait(child));
    return 0;
}
