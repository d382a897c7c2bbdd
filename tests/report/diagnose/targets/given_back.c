// A job gathers what it needs, gives it back, and the program goes on for at least as long as that took.
#include <stdlib.h>
#include <time.h>
struct node { struct node *next; char rest[500]; };
static struct node *gather(struct node *list) {
    struct node *node = malloc(sizeof *node);
    node->next = list;
    return node;
}
int main(void) {
    struct node *list = NULL;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int step = 0; step < 3000; step++) {
        for (int i = 0; i < 3; i++) {
            char *volatile word = malloc(100);
            free(word);
        }
        list = gather(list);
        nanosleep(&(struct timespec){0, 300000}, NULL);
    }
    for (struct node *next; list; list = next) {
        next = list->next;
        free(list);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    nanosleep(&(struct timespec){2 + end.tv_sec - begin.tv_sec, 0}, NULL);
    return 0;
}
