// What a program learns of itself through /proc and the auxiliary vector is about the program, not
// about what runs it.
#include "stress.h"
#include <elf.h>
#include <fcntl.h>
#include <libgen.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static char *slurp(const char *path, size_t *length) {
    size_t capacity = 1 << 20, n = 0;
    char *text = malloc(capacity);
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    long got;
    while ((got = read(fd, text + n, capacity - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = 0;
    close(fd);
    if (length)
        *length = n;
    return text;
}

// /proc/self/auxv is what the stack holds.
static void check_auxv(char **argv) {
    static uint64_t file[512];
    while (*argv++) {
    }
    while (*argv++) {
    }
    int fd = open("/proc/self/auxv", O_RDONLY);
    ssize_t size = read(fd, file, sizeof file);
    CHECK(size > 0 && close(fd) == 0);
    unsigned count = 0;
    const uint64_t *vector = (const uint64_t *)argv;
    do {
        CHECK(8 * count + 16 <= (size_t)size);
        SAME(file[count], vector[count]);
        SAME(file[count + 1], vector[count + 1]);
        count += 2;
    } while (vector[count - 2] != AT_NULL);
    printf("auxv %d entries\n", count > 30);
}

static void identity(char **argv) {
    char path[4096], real[4096];
    long n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    CHECK(n > 0);
    path[n] = 0;
    CHECK(realpath(argv[0], real) != NULL);
    printf("exe %d\n", strcmp(path, real) == 0);
    char link[64];
    snprintf(link, sizeof(link), "/proc/%d/exe", getpid());
    n = readlink(link, path, sizeof(path) - 1);
    path[n] = 0;
    printf("exe by pid %d\n", strcmp(path, real) == 0);
    n = readlinkat(AT_FDCWD, "/proc/thread-self/exe", path, 10);
    printf("short read %ld\n", n);
    int fd = open("/proc/self/exe", O_RDONLY);
    char magic[4];
    CHECK(fd >= 0 && read(fd, magic, 4) == 4 && memcmp(magic, ELFMAG, 4) == 0);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof(path) - 1);
    path[n] = 0;
    printf("link of the descriptor %d\n", strcmp(path, real) == 0);
    close(fd);
    char *text = slurp("/proc/self/cmdline", NULL);
    printf("cmdline %d [%s]\n", strcmp(text, argv[0]) == 0, text + strlen(text) + 1);
    text = slurp("/proc/self/comm", NULL);
    printf("comm %s", text);
    char name[16];
    CHECK(prctl(PR_GET_NAME, name) == 0);
    printf("name %s\n", name);
    size_t length;
    text = slurp("/proc/self/environ", &length);
    printf("environ %d\n", memmem(text, length, "STRESS_MARK=here", 16) != NULL);
    printf("started as itself %d\n", strcmp((char *)getauxval(AT_EXECFN), argv[0]) == 0);
    CHECK(getauxval(AT_PAGESZ) == PAGE && getauxval(AT_RANDOM) != 0);
    check_auxv(argv);
    CHECK(getauxval(AT_PHNUM) > 3 && getauxval(AT_PHDR) != 0);
    printf("platform %s entry %d\n", (char *)getauxval(AT_PLATFORM), getauxval(AT_ENTRY) != 0);
}

// The file of mappings is like all of /proc, whatever way one asks.
static void status_of_maps(void) {
    struct stat plain, by_path;
    struct statx extended;
    int fd = open("/proc/self/maps", O_RDONLY);
    CHECK(fd >= 0 && stat("/proc/self/maps", &by_path) == 0);
    CHECK(syscall(SYS_fstat, fd, &plain) == 0);
    CHECK(plain.st_ino == by_path.st_ino && plain.st_dev == by_path.st_dev);
    CHECK(fstatat(fd, "", &plain, AT_EMPTY_PATH) == 0);
    CHECK(plain.st_ino == by_path.st_ino);
    CHECK(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended) == 0);
    printf("maps %o %ld %ld, %o %ld %u\n", plain.st_mode, (long)plain.st_size,
           (long)plain.st_blksize, extended.stx_mode, (long)extended.stx_size,
           extended.stx_blksize);
    close(fd);
}

static int static_variable = 4;

// Whether the file holds at that offset what is mapped there.
static int is_part(const char *path, unsigned long offset, const void *mapped) {
    char bytes[16];
    int fd = open(path, O_RDONLY);
    int same = fd >= 0 && pread(fd, bytes, sizeof(bytes), (long)offset) == sizeof(bytes) &&
               memcmp(bytes, mapped, sizeof(bytes)) == 0;
    close(fd);
    return same;
}

static void maps(void) {
    char *text = slurp("/proc/self/maps", NULL), *line, *rest = text;
    unsigned long last = 0;
    int overlaps = 0, code = 0, data = 0, stack = 0, heap = 0, stacks = 0, heaps = 0, bad = 0;
    int libc = 0, vdso = 0;
    char *block = malloc(100);
    unsigned long here = (unsigned long)&here;
    while ((line = strsep(&rest, "\n")) && *line) {
        unsigned long start, end, offset, inode;
        unsigned major, minor;
        char protection[8], name[4096] = "";
        int n = sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %4095[^\n]", &start, &end, protection,
                       &offset, &major, &minor, &inode, name);
        bad += n < 7;
        overlaps += start < last || end <= start;
        last = end;
        int executable = protection[2] == 'x', writable = protection[1] == 'w';
        if (start <= (unsigned long)maps && (unsigned long)maps < end)
            code += executable && !writable && strstr(name, "proc_self") &&
                    is_part(name, offset + ((unsigned long)maps - start), (void *)maps);
        if (start <= (unsigned long)&static_variable && (unsigned long)&static_variable < end)
            data += writable && !executable;
        if (start <= here && here < end)
            stack += writable && strstr(name, "[stack]") != NULL;
        if (start <= (unsigned long)block && (unsigned long)block < end)
            heap += writable && strstr(name, "[heap]") != NULL;
        if (start <= (unsigned long)puts && (unsigned long)puts < end)
            libc += executable && strstr(name, "libc.so.6") &&
                    is_part(name, offset + ((unsigned long)puts - start), (void *)puts);
        stacks += strstr(name, "[stack]") != NULL;
        heaps += strstr(name, "[heap]") != NULL;
        vdso += strstr(name, "[vdso]") != NULL;
    }
    printf("maps: overlaps %d bad %d code %d data %d stack %d heap %d libc %d stacks %d heaps %d "
           "vdso %d\n",
           overlaps, bad, code, data, stack, heap, libc, stacks, heaps, vdso);
    free(block);
}

static int count_phdr(struct dl_phdr_info *info, size_t size, void *data) {
    ++*(int *)data;
    return 0;
}

int main(int argc, char **argv) {
    if (!getenv("STRESS_MARK")) {
        setenv("STRESS_MARK", "here", 1);
        fflush(stdout);
        execl(argv[0], argv[0], "an argument", (char *)NULL);
        return 1;
    }
    identity(argv);
    maps();
    status_of_maps();
    int modules = 0;
    dl_iterate_phdr(count_phdr, &modules);
    printf("modules %d\n", modules);
    prctl(PR_SET_NAME, "renamed");
    printf("renamed %s", slurp("/proc/self/comm", NULL));
    printf("threads %d\n", atoi(strstr(slurp("/proc/self/status", NULL), "Threads:") + 8));
    return 0;
}
