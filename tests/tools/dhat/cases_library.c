// What the C library does with blocks: mem*, str* and wcs* functions, system calls, streams.
#include "cases.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>

static void copies(void) {
    char *a = malloc(300), *b = malloc(300);
    memset(a, 1, 300);
    for (volatile int size = 0; size < 64; size += 7) {
        memcpy(b, a, size);
        memcpy(b + 1, a + 3, size);
        memcpy(b + 16, a + 8, size);
        memmove(a + 1, a, size);
        memmove(a, a + 9, size);
        memmove(a, a, size);
        mempcpy(b, a, size);
        bcopy(a, b, size);
    }
    sink += b[3];
    free(a);
    free(b);
}

static void filling(void) {
    char *a = malloc(777);
    for (volatile int size = 0; size < 700; size += 99)
        memset(a + size % 8, size, size);
    free(a);
}

static void comparing(void) {
    char *a = malloc(100), *b = malloc(100);
    memset(a, 3, 100);
    memset(b, 3, 100);
    b[77] = 4;
    for (volatile int size = 0; size < 100; size += 9) {
        sink += memcmp(a, b, size);
        sink += memcmp(a + 1, b + 1, size / 2);
        sink += memcmp(a + 1, b + 2, size / 2);
        sink += bcmp(a, b, size);
    }
    free(a);
    free(b);
}

static char *text(const char *from) {
    char *to = malloc(strlen(from) + 1);
    return strcpy(to, from);
}

static void strings(void) {
    char *a = text("The quick brown fox"), *b = malloc(100);
    strcpy(b, a);
    stpcpy(b, a);
    strncpy(b, a, 10);
    strncpy(b, a, 40);
    stpncpy(b, a, 30);
    strcat(b, a);
    strncat(b, a, 5);
    strncat(b, a, 50);
    strncat(b, a, 0);
    sink += strlen(a) + strnlen(b, 10) + strnlen(b, 90);
    free(strdup(a));
    free(strndup(a, 4));
    free(a);
    free(b);
}

static void string_order(void) {
    char *a = text("Monday morning"), *b = text("Monday mornings"), *c = text("MONDAY EVENING");
    sink += strcmp(a, b) + strcmp(b, a) + strcmp(a, a) + strcmp(a, c);
    for (volatile int n = 0; n < 20; n += 6)
        sink += strncmp(a, b, n) + strncmp(a, c, n);
    free(a);
    free(b);
    free(c);
}

static void string_order_folded(void) {
    char *a = text("Monday morning"), *b = text("Monday mornings"), *c = text("MONDAY EVENING");
    sink += strcasecmp(a, c) + strcasecmp(b, a) + strcasecmp(c, b) + strcasecmp(a, a);
    for (volatile int n = 0; n < 20; n += 6)
        sink += strncasecmp(a, b, n) + strncasecmp(a, c, n) + strncasecmp(c, b, n);
    free(a);
    free(b);
    free(c);
}

static void string_search(void) {
    char *a = text("over the lazy dog");
    volatile int wanted[] = {'o', 'z', 'q', 0};
    for (int i = 0; i < 4; i++) {
        sink += strchr(a, wanted[i]) != NULL;
        sink += strrchr(a, wanted[i]) != NULL;
        sink += memchr(a, wanted[i], 12) != NULL;
        sink += memrchr(a, wanted[i], 12) != NULL;
        sink += *strchrnul(a, wanted[i]);
    }
    sink += *(char *)rawmemchr(a, 'y');
    free(a);
}

static void string_in_string(void) {
    char *a = text("a banana, an ananas, bananas"), *b = text("ananas"), *c = text("xyz"),
         *d = text(""), *e = text("BANANAS");
    sink += strstr(a, b) - a;
    sink += strstr(a, c) != NULL;
    sink += strstr(a, d) == a;
    sink += strcasestr(a, e) - a;
    sink += strcasestr(a, c) != NULL;
    free(a);
    free(b);
    free(c);
    free(d);
    free(e);
}

static void string_sets(void) {
    char *a = text("key = value # remark"), *b = text("abcdefghijklmnopqrstuvwxyz"),
         *c = text("=#"), *d = text("");
    sink += strspn(a, b) + strcspn(a, c) + strspn(a, d) + strcspn(a, d) + strcspn(a, b);
    sink += strpbrk(a, c) - a;
    sink += strpbrk(b, c) != NULL;
    sink += strpbrk(b, d) != NULL;
    for (char *part = strtok(a, " "); part; part = strtok(NULL, " "))
        sink += *part;
    free(a);
    free(b);
    free(c);
    free(d);
}

static void wide(void) {
    wchar_t *a = malloc(40 * sizeof *a), *b = malloc(40 * sizeof *b);
    wcscpy(a, L"wide characters");
    wcscpy(b, L"wide horizons");
    sink += wcslen(a) + wcsnlen(b, 5) + wcsnlen(b, 30);
    sink += wcscmp(a, b) + wcsncmp(a, b, 3) + wcsncmp(a, b, 30) + wcscmp(a, a);
    sink += wcschr(a, L'c') != NULL;
    sink += wcschr(a, L'x') != NULL;
    sink += wcsrchr(a, L'c') != NULL;
    sink += wmemchr(a, L'r', 9) != NULL;
    free(a);
    free(b);
}

static void calls(void) {
    char *a = malloc(600);
    int pipes[2];
    if (pipe(pipes) != 0)
        abort();
    memset(a, 'x', 600);
    sink += write(pipes[1], a, 300);
    sink += read(pipes[0], a + 20, 100);
    struct iovec parts[2] = {{a, 50}, {a + 100, 70}};
    sink += readv(pipes[0], parts, 2);
    sink += writev(pipes[1], parts, 2);
    sink += read(pipes[0], a + 500, 100) > 0;
    strcpy(a, "/no/such/file");
    sink += open(a, O_RDONLY);
    sink += read(-1, a, 100);
    free(a);
}

static void stream(void) {
    FILE *file = tmpfile();
    char line[100];
    for (int i = 0; i < 400; i++)
        fprintf(file, "line %d of many\n", i);
    rewind(file);
    while (fgets(line, sizeof line, file))
        sink += line[5];
    fclose(file);
    printf("%ld characters and %d numbers\n", 12345678L, 17);
    puts("done");
}

static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

static void sorting(void) {
    int *numbers = malloc(300 * sizeof *numbers), wanted = 4711 % 997;
    for (int i = 0; i < 300; i++)
        numbers[i] = (i * 4711) % 997;
    qsort(numbers, 300, sizeof *numbers, compare);
    sink += bsearch(&wanted, numbers, 300, sizeof *numbers, compare) != NULL;
    free(numbers);
}

static void made_by_library(void) {
    char *line = NULL, *made;
    size_t room = 0;
    FILE *memory = fmemopen("one\ntwo and a bit\n", 18, "r");
    while (getline(&line, &room, memory) > 0)
        sink += line[0];
    fclose(memory);
    free(line);
    sink += asprintf(&made, "%s-%d", "made", 42);
    free(made);
    FILE *out = open_memstream(&made, &room);
    fputs("some text", out);
    fclose(out);
    free(made);
}

const struct test_case library_cases[] = {
    CASE(copies),
    CASE(filling),
    CASE(comparing),
    CASE(strings),
    CASE(string_order),
    CASE(string_order_folded),
    CASE(string_search),
    CASE(string_in_string),
    CASE(string_sets),
    CASE(wide),
    CASE(calls),
    CASE(stream),
    CASE(sorting),
    CASE(made_by_library),
    {0},
};
