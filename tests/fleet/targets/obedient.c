// Does what the lines of its standard input say, and answers each with "ok". It uses no stdio, which
// would allocate.
//   h N SIZE   hold N more blocks of SIZE bytes
//   f N        free the N latest of them
//   t N SIZE   allocate and free N blocks, one after the other
//   m N        free N of them at random, and hold another of a random size each time
//   l N SIZE   lose N blocks
//   r N        start N children that do nothing and end
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *held[1 << 20];
static size_t held_count;

__attribute__((noinline)) static void hold(long count, long size) {
    while (count-- > 0)
        held[held_count++] = malloc((size_t)size);
}

__attribute__((noinline)) static void let_go(long count) {
    while (count-- > 0)
        free(held[--held_count]);
}

__attribute__((noinline)) static void mix(long count) {
    static unsigned long random = 1;
    while (count-- > 0) {
        random = random * 6364136223846793005ul + 1;
        size_t at = (random >> 33) % held_count;
        free(held[at]);
        held[at] = malloc(random >> 40 & 1023);
    }
}

__attribute__((noinline)) static void use_shortly(long count, long size) {
    while (count-- > 0) {
        char *volatile block = malloc((size_t)size);
        *block = 1;
        free(block);
    }
}

__attribute__((noinline)) static void lose(long count, long size) {
    while (count-- > 0) {
        char *volatile block = malloc((size_t)size);
        *block = 1;
        block = NULL;
    }
}

static int read_line(char *line, size_t room) {
    size_t size = 0;
    while (size + 1 < room && read(0, line + size, 1) == 1)
        if (line[size++] == '\n') {
            line[size] = 0;
            return 1;
        }
    return 0;
}

int main(void) {
    char line[256];
    while (read_line(line, sizeof line)) {
        char *at;
        long count = strtol(line + 1, &at, 10), size = strtol(at, NULL, 10);
        if (line[0] == 'h')
            hold(count, size);
        else if (line[0] == 'f')
            let_go(count);
        else if (line[0] == 'm')
            mix(count);
        else if (line[0] == 't')
            use_shortly(count, size);
        else if (line[0] == 'l')
            lose(count, size);
        for (long i = 0; line[0] == 'r' && i < count; i++) {
            if (fork() == 0)
                _exit(0);
            wait(NULL);
        }
        if (write(1, "ok\n", 3) != 3)
            return 1;
    }
    return 0;
}
