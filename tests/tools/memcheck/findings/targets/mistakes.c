// A few mistakes of each kind, in one process with two threads.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
    struct node *next;
    char filler[24];
};

static char *kept;

__attribute__((noinline)) static int decide(const int *values) {
    return values[3] ? 1 : 2;
}

__attribute__((noinline)) static void overrun(int *values) {
    values[10] = 1;
}

static void lose_cycle(void) {
    struct node *a = malloc(sizeof *a), *b = malloc(sizeof *b);
    a->next = b;
    b->next = a;
}

static void *other_thread(void *unused) {
    int *values = malloc(16);
    int result = decide(values);
    free(values);
    values[2] = result; // freed
    return NULL;
}

int main(int argc, char **argv) {
    int *values = malloc(40);
    overrun(values);
    for (int i = 0; i < 3; i++)
        decide(values);
    free(values);
    free(values);
    kept = malloc(77);
    lose_cycle();
    char *text = malloc(5);
    int null = open("/dev/null", O_WRONLY);
    if (write(null, text, 5) != 5)
        return 1;
    free(text);
    pthread_t thread;
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    if (argc > 1 && argv[1][0] == 'f' && fork() == 0)
        overrun(malloc(40));
    if (argc > 1 && argv[1][0] == 's')
        *(volatile int *)8 = 1;
    if (argc > 1 && argv[1][0] == 'w')
        pause();
    return 3;
}
