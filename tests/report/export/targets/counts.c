// Allocates in known amounts from functions of known names, and prints what it did: a line
// `FUNCTION allocated_bytes allocated_blocks peak_bytes leaked_bytes leaked_blocks temporary` for
// each. An argument makes it leak that many more blocks; `kill` in place of one ends it by SIGKILL.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *held[1000];
static void *leaked[2000];

__attribute__((noinline)) static void hold(int count) {
    for (int i = 0; i < count; i++)
        held[i] = malloc(1000);
}

__attribute__((noinline)) static void leak(int count) {
    for (int i = 0; i < count; i++)
        leaked[i] = malloc(24);
}

__attribute__((noinline)) static void temporary(int count) {
    for (int i = 0; i < count; i++) {
        void *volatile block = malloc(64);
        free(block);
    }
}

__attribute__((noinline)) static void *grow(void) {
    char *block = malloc(10);
    for (int i = 1; i <= 20; i++)
        block = realloc(block, 10 + 10 * i);
    return block;
}

__attribute__((noinline)) static void deeper(int depth) {
    if (depth)
        deeper(depth - 1);
    else
        held[999] = calloc(3, 111);
    __asm__ volatile("");
}

static void *in_thread(void *unused) {
    for (int i = 0; i < 50; i++)
        held[500 + i] = malloc(200);
    return NULL;
}

static void say(const char *text) {
    if (write(1, text, strlen(text)) < 0)
        abort();
}

int main(int argc, char **argv) {
    int more = argc > 1 ? atoi(argv[1]) : 0;
    char line[200];
    pthread_t thread;
    hold(100);
    leak(10 + more);
    temporary(300);
    void *grown = grow();
    deeper(12);
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    if (argc > 1 && strcmp(argv[1], "kill") == 0)
        raise(SIGKILL);
    while (argc > 1 && strcmp(argv[1], "wait") == 0)
        pause(); // until it is killed
    for (int i = 0; i < 1000; i++)
        free(held[i]);
    free(grown);
    say("hold 100000 100 100000 0 0 0\n");
    snprintf(line, sizeof line, "leak %d %d %d %d %d 0\n", 24 * (10 + more), 10 + more,
             24 * (10 + more), 24 * (10 + more), 10 + more);
    say(line);
    say("temporary 19200 300 0 0 0 300\n");
    say("grow 210 1 210 0 0 0\n");
    say("deeper 333 1 333 0 0 0\n");
    say("in_thread 10000 50 10000 0 0 0\n");
    return 0;
}
