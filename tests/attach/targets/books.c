// A live set that the program keeps books of. Its blocks are made by known functions, and led to by
// known variables. Commands on stdin: "make N", "drop N", "grow N", "books", "spin SECONDS"; each is
// answered with one line, which for all is the books: blocks and usable bytes that the table holds.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROOM = 100000 };
static void *table[ROOM];
static size_t used;

static __attribute__((noinline)) void make_one(size_t number) {
    table[used] = malloc(24 + number % 40 * 16);
    memset(table[used++], 1, 24);
}

static void make(long count) {
    for (long i = 0; i < count && used < ROOM; i++)
        make_one((size_t)i);
}

static void drop(long count) {
    while (count-- > 0 && used)
        free(table[--used]);
}

static void grow(long count) {
    for (size_t i = 0; i < used && count-- > 0; i++)
        table[i] = realloc(table[i], malloc_usable_size(table[i]) + 1000);
}

// Like a server that works: blocks come and go, and others stay.
static void spin(long seconds) {
    time_t end = time(NULL) + seconds;
    while (time(NULL) < end)
        for (size_t i = 0; i < used; i += 7) {
            free(table[i]);
            table[i] = malloc(24 + i % 40 * 16);
        }
}

static void tell(void) {
    size_t bytes = 0;
    for (size_t i = 0; i < used; i++)
        bytes += malloc_usable_size(table[i]);
    printf("{\"blocks\": %zu, \"bytes\": %zu}\n", used, bytes);
    fflush(stdout);
}

int main(void) {
    char word[16];
    long number;
    static char lines[4096];
    setvbuf(stdin, lines, _IOFBF, sizeof lines);
    tell();
    while (scanf("%15s %ld", word, &number) == 2) {
        if (strcmp(word, "make") == 0)
            make(number);
        if (strcmp(word, "drop") == 0)
            drop(number);
        if (strcmp(word, "grow") == 0)
            grow(number);
        if (strcmp(word, "spin") == 0)
            spin(number);
        tell();
    }
    return 0;
}
