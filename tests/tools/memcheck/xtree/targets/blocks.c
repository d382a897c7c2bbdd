// Blocks that are made, resized and freed in every way, by two threads and from deep down.
//   blocks          to the end
//   blocks kill     ends by SIGKILL
//   blocks fork     forks; parent and child go on, the parent first
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *kept[8];

static void *leaf(size_t size) {
    return malloc(size);
}

static void *middle(size_t size) {
    return leaf(size);
}

static void *deep(int levels, size_t size) {
    return levels ? deep(levels - 1, size) : leaf(size);
}

static void *on_thread(void *argument) {
    for (int i = 0; i < 10; i++)
        free(middle(100));
    free(kept[0]);
    return malloc(33);
}

static void make(void) {
    kept[0] = middle(10);
    kept[1] = leaf(20);
    kept[2] = calloc(3, 7);
    kept[3] = memalign(64, 40);
    posix_memalign(&kept[4], 128, 50);
    kept[5] = realloc(NULL, 77);
    kept[6] = deep(30, 60);
    kept[7] = malloc(0);
    kept[1] = realloc(kept[1], 5);
    kept[2] = realloc(kept[2], 2000);
    free(malloc(3000000));
    kept[5] = realloc(kept[5], 0);
    for (int i = 0; i < 7; i++)
        free(deep(i, 9));
}

static void go_on(const char *how) {
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "fork") != 0)
        return;
    int gate[2];
    char byte = 0;
    pipe(gate);
    if (fork() == 0) {
        read(gate[0], &byte, 1);
        free(kept[3]);
        leaf(7);
        _exit(0);
    }
    for (int i = 0; i < 1000; i++)
        leaf(11);
    write(gate[1], &byte, 1);
    wait(NULL);
}

int main(int argc, char **argv) {
    pthread_t thread;
    void *result;
    make();
    go_on(argc > 1 ? argv[1] : "");
    pthread_create(&thread, NULL, on_thread, NULL);
    pthread_join(thread, &result);
    free(result);
    return 0;
}
