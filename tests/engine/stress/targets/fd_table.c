// The descriptor table is the program's own: lowest free numbers, the same count in /proc/self/fd,
// closing everything harms nothing.
#include "stress.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>

static int count(void) {
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    CHECK(d != NULL);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 3; // ., .. and the directory itself
}

static void compute(void) {
    uint64_t h = 0;
    for (int i = 0; i < 100000; i++)
        h = stress_mix(h, (uint64_t)i);
    char *p = malloc(1000000);
    memset(p, (int)h, 1000000);
    free(p);
    printf("%016llx\n", (unsigned long long)h);
}

static void *thread(void *arg) {
    compute();
    return NULL;
}

int main(int argc, char **argv) {
    printf("open at start: %d\n", count());
    int a = open("/dev/null", O_RDONLY), b = open("/dev/null", O_RDONLY);
    printf("lowest %d %d\n", a, b);
    close(a);
    printf("reused %d\n", open("/dev/null", O_RDONLY));
    printf("fcntl %d %d\n", fcntl(a, F_DUPFD, 0), fcntl(b, F_DUPFD, 100));
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    printf("limit is sane %d\n", limit.rlim_cur >= 256);
    // Nothing may be hidden in high numbers: dup2 onto any of them works, and stays.
    for (int fd = 200; fd < 256; fd++) {
        CHECK(dup2(1, fd) == fd);
        CHECK(fcntl(fd, F_GETFD) == 0);
    }
    stress_join(stress_thread(thread, NULL));
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    stress_join(stress_thread(thread, NULL));
    printf("after closing: %d\n", count());
    CHECK(syscall(SYS_close_range, 3, ~0u, 0) == 0);
    compute();
    printf("open at the end: %d\n", count());
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(syscall(SYS_close_range, 3, ~0u, 4 /* CLOSE_RANGE_CLOEXEC */) == 0);
        if (argc < 2)
            execl("/proc/self/exe", argv[0], "x", (char *)NULL);
        _exit(6);
    }
    printf("child %x\n", (unsigned)stress_wait(pid));
    struct rlimit few = {3, limit.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    CHECK(open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
    stress_join(stress_thread(thread, NULL));
    CHECK(getrlimit(RLIMIT_NOFILE, &few) == 0);
    printf("limit now %d\n", (int)few.rlim_cur);
    return 0;
}
