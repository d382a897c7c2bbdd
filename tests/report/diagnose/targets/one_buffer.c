// A text that is put together in one buffer, by steps of the same size, while the program works.
#include <stdlib.h>
#include <time.h>
int main(void) {
    char *text = NULL;
    for (size_t size = 0; size < 3000 * 64;) {
        for (int i = 0; i < 10; i++) {
            char *volatile word = malloc(100);
            free(word);
        }
        text = realloc(text, size += 64);
        text[size - 1] = 1;
        nanosleep(&(struct timespec){0, 300000}, NULL);
    }
    return text[63] - 1;
}
