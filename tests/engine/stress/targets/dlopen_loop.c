// Open, call, close, 300 times: code at an address changes its meaning each time. Copies of one
// library lie in other files, so that addresses are taken over by different code.
#include "stress.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>

static long left;

static void copy(const char *from, int to) {
    char block[65536];
    int fd = open(from, O_RDONLY);
    long n;
    CHECK(fd >= 0);
    while ((n = read(fd, block, sizeof(block))) > 0)
        CHECK(write(to, block, (size_t)n) == n);
    close(fd);
}

int main(int argc, char **argv) {
    char path[2][4096];
    snprintf(path[0], sizeof(path[0]), "%s/libstress_tls.so", dirname(strdup(argv[0])));
    int memory = memfd_create("copy", 0);
    CHECK(memory >= 0);
    copy(path[0], memory);
    snprintf(path[1], sizeof(path[1]), "/proc/self/fd/%d", memory);
    long total = 0;
    for (int i = 0; i < 300; i++) {
        void *library = dlopen(path[i % 2], i % 3 ? RTLD_NOW : RTLD_LAZY);
        if (!library)
            puts(dlerror());
        CHECK(library != NULL);
        long (*next)(int) = (long (*)(int))dlsym(library, "library_next");
        long (*loads)(void) = (long (*)(void))dlsym(library, "library_loads");
        void (*notify)(long *) = (void (*)(long *))dlsym(library, "library_notify");
        CHECK(next && loads && notify);
        SAME(loads(), 1);
        notify(&left);
        total += next(i);
        CHECK(dlclose(library) == 0);
        SAME(left, i + 1);
    }
    for (int i = 0; i < 20; i++) {
        void *library = dlopen("libm.so.6", RTLD_LAZY);
        double (*root)(double) = (double (*)(double))dlsym(library, "sqrt");
        total += (long)root(i * i);
        dlclose(library);
    }
    CHECK(dlopen("/nonexistent.so", RTLD_NOW) == NULL);
    printf("total %ld\n", total);
    return 0;
}
