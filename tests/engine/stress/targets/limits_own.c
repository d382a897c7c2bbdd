// Resource limits that the program sets itself: what it sees of them, and what they do.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress.h"

enum { PIECE = 16 << 20, PIECES = 16 };

static const int resources[] = {RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_FSIZE, RLIMIT_NOFILE};
static const char *const names[] = {"as", "data", "stack", "fsize", "nofile"};

static void limit(int resource, rlim_t soft, rlim_t hard) {
    struct rlimit value = {soft, hard};
    CHECK(setrlimit(resource, &value) == 0);
}

static void print_limits(const char *who) {
    for (unsigned i = 0; i < 5; i++) {
        struct rlimit value, again;
        CHECK(syscall(SYS_getrlimit, resources[i], &value) == 0);
        CHECK(prlimit(getpid(), resources[i], NULL, &again) == 0);
        CHECK(value.rlim_cur == again.rlim_cur && value.rlim_max == again.rlim_max);
        printf("%s: %s %lu %lu\n", who, names[i], value.rlim_cur, value.rlim_max);
    }
    FILE *file = fopen("/proc/self/limits", "r");
    char line[256];
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, "address") || strstr(line, "data") || strstr(line, "stack") ||
            strstr(line, "file"))
            printf("%s: %s", who, line);
    if (file)
        fclose(file);
}

static int ended(int child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

// Runs a part in a child, so that what it lowers is forgotten.
static void apart(const char *name, void (*part)(void)) {
    fflush(stdout);
    int child = fork();
    if (child == 0) {
        part();
        fflush(stdout);
        // Once more a child, under these limits.
        child = fork();
        if (child == 0)
            _exit(7);
        _exit(ended(child) == 7 << 8 ? 0 : 1);
    }
    printf("%s: %x\n", name, ended(child));
}

static unsigned map_all(void *places[PIECES + 1], int prot) {
    unsigned count = 0;
    while (count <= PIECES) {
        places[count] = mmap(NULL, PIECE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (places[count] == MAP_FAILED)
            break;
        count++;
    }
    printf("most: %d, errno %d\n", count >= PIECES - 2 && count <= PIECES, errno);
    return count;
}

static void *no_work(void *argument) {
    return argument;
}

static void address_space(void) {
    void *places[PIECES + 1];
    limit(RLIMIT_AS, (rlim_t)PIECE * PIECES, RLIM_INFINITY);
    unsigned count = map_all(places, PROT_NONE);
    printf("malloc: %d\n", malloc(PIECE) != NULL);
    printf("growing: %d\n", mremap(places[0], PIECE, 2 * PIECE, MREMAP_MAYMOVE) != MAP_FAILED);
    printf("in place: %d\n", mmap(places[1], PIECE, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == places[1]);
    memset(places[1], 1, PIECE);
    for (unsigned i = 0; i < count; i++)
        CHECK(munmap(places[i], PIECE) == 0);
    char *block = malloc(PIECE);
    printf("malloc again: %d\n", block != NULL);
    free(block);
    pthread_t thread;
    int error = pthread_create(&thread, NULL, no_work, NULL);
    printf("thread: %d\n", error);
    if (!error)
        pthread_join(thread, NULL);
}

static void small_blocks(void) {
    enum { SIZE = 100000, MOST = 10000 };
    limit(RLIMIT_AS, 256 << 20, 256 << 20);
    static char *blocks[MOST];
    unsigned count = 0;
    while (count < MOST && (blocks[count] = malloc(SIZE)))
        count++;
    printf("small blocks: %d\n", count > 1500 && count < 2800);
    while (count-- > 0)
        free(blocks[count]);
}

static void data(void) {
    void *places[PIECES + 1];
    limit(RLIMIT_DATA, (rlim_t)PIECE * PIECES, RLIM_INFINITY);
    unsigned count = map_all(places, PROT_READ | PROT_WRITE);
    void *before = sbrk(0);
    printf("break: %d\n", sbrk(PIECE) == before);
    void *readable = mmap(NULL, 2 * PIECE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("readable: %d\n", readable != MAP_FAILED);
    printf("writable: %d\n", mprotect(readable, 2 * PIECE, PROT_READ | PROT_WRITE) == 0);
    printf("shared: %d\n", mmap(NULL, PIECE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                                0) != MAP_FAILED);
    for (unsigned i = 0; i < count; i++)
        CHECK(munmap(places[i], PIECE) == 0);
    printf("break: %d\n", sbrk(PIECE) == before);
    printf("writable: %d\n", mprotect(readable, 2 * PIECE, PROT_READ | PROT_WRITE) == 0);
}

static void file_size(void) {
    char bytes[8192] = {0};
    signal(SIGXFSZ, SIG_IGN);
    limit(RLIMIT_FSIZE, 5000, 6000);
    FILE *file = tmpfile();
    int fd = fileno(file);
    long first = write(fd, bytes, sizeof bytes), second = write(fd, bytes, 1);
    printf("written: %ld %ld %d\n", first, second, errno);
    limit(RLIMIT_FSIZE, 0, 0);
    printf("at limit 0: %d\n", ftruncate(fd, 6000));
    fclose(file);
    print_limits("fsize");
    int maps = open("/proc/self/maps", O_RDONLY);
    printf("maps: %d\n", maps >= 0 && read(maps, bytes, 100) == 100);
    close(maps);
}

static void descriptors(void) {
    limit(RLIMIT_NOFILE, 32, 64);
    int last = -1, fd;
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    printf("last: %d, errno %d\n", last, errno);
    printf("maps: %d, errno %d\n", open("/proc/self/maps", O_RDONLY), errno);
    printf("dup2: %d\n", dup2(0, 32));
    limit(RLIMIT_NOFILE, 64, 64);
    printf("dup2: %d %d\n", dup2(0, 33), dup2(0, 64));
    while ((fd = open("/dev/null", O_RDONLY)) >= 0)
        last = fd;
    printf("last: %d, errno %d\n", last, errno);
    struct rlimit more = {64, 65};
    int failed = setrlimit(RLIMIT_NOFILE, &more);
    printf("more: %d %d\n", failed, failed ? errno : 0);
}

static void in_vfork(void) {
    struct rlimit value;
    int child = vfork();
    if (child == 0) {
        limit(RLIMIT_NOFILE, 10, 20);
        limit(RLIMIT_AS, 1 << 30, 1 << 30);
        _exit(3);
    }
    CHECK(ended(child) == 3 << 8);
    CHECK(getrlimit(RLIMIT_NOFILE, &value) == 0 && value.rlim_cur > 20);
    CHECK(getrlimit(RLIMIT_AS, &value) == 0 && value.rlim_cur == RLIM_INFINITY);
}

static void inherited(void) {
    limit(RLIMIT_AS, 3ul << 30, 5ul << 30);
    limit(RLIMIT_DATA, 2ul << 30, 2ul << 30);
    limit(RLIMIT_STACK, 1 << 20, 2 << 20);
    limit(RLIMIT_FSIZE, 123456, 234567);
    limit(RLIMIT_NOFILE, 20, 30);
    print_limits("before");
    fflush(stdout);
    execl("/proc/self/exe", "limits", "executed", NULL);
}

static void wrong(void) {
    struct rlimit crossed = {2, 1}, *bad = (void *)8, value;
    printf("crossed: %d %d\n", setrlimit(RLIMIT_AS, &crossed), errno);
    printf("bad: %ld %d\n", syscall(SYS_setrlimit, RLIMIT_AS, bad), errno);
    printf("bad: %ld %d\n", syscall(SYS_getrlimit, RLIMIT_AS, bad), errno);
    printf("unknown: %ld %d\n", syscall(SYS_getrlimit, 99, &value), errno);
    limit(RLIMIT_DATA, 1 << 30, 1 << 30);
    struct rlimit higher = {1 << 30, 1ul << 31};
    int failed = setrlimit(RLIMIT_DATA, &higher);
    printf("higher: %d %d\n", failed, failed ? errno : 0);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        print_limits(argv[1]);
        return 0;
    }
    print_limits("first");
    apart("address space", address_space);
    apart("small blocks", small_blocks);
    apart("data", data);
    apart("file size", file_size);
    apart("descriptors", descriptors);
    apart("vfork", in_vfork);
    apart("inherited", inherited);
    apart("wrong", wrong);
    return 0;
}
