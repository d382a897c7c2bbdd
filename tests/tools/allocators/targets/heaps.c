// Blocks of mimalloc's heaps, which end together with them, among blocks of malloc.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct mi_heap_s mi_heap_t;
extern mi_heap_t *mi_heap_new(void);
extern void mi_heap_destroy(mi_heap_t *);
extern void mi_heap_delete(mi_heap_t *);
extern void *mi_heap_malloc(mi_heap_t *, size_t);
extern void *mi_heap_realloc(mi_heap_t *, void *, size_t);
extern void *mi_malloc_aligned_at(size_t, size_t, size_t);
extern char *mi_strdup(const char *);
extern char *mi_realpath(const char *, char *);
extern void *mi_malloc(size_t), *mi_realloc(void *, size_t), *mi_zalloc(size_t);
extern void *mi_rezalloc(void *, size_t);
extern size_t mi_usable_size(const void *);
extern void mi_free(void *);

static void *volatile lost;

int main(void) {
    mi_heap_t *heap = mi_heap_new(), *other = mi_heap_new();
    for (int i = 0; i < 1000; i++)
        memset(mi_heap_malloc(heap, 100), i, 100); // ends with the heap
    char *kept = mi_heap_malloc(other, 50);
    kept = mi_heap_realloc(other, kept, 5000);
    strcpy(kept, "kept");
    mi_heap_destroy(heap);
    mi_heap_delete(other); // its blocks stay
    kept = mi_realloc(kept, 9000);
    if (strcmp(kept, "kept") || mi_usable_size(kept) < 9000)
        abort();
    mi_free(kept);

    char *at = mi_malloc_aligned_at(1000, 256, 8);
    if (((uintptr_t)at + 8) % 256)
        abort();
    mi_free(at);
    char *text = mi_strdup("text"), *path = mi_realpath("/", NULL);
    if (strcmp(text, "text") || strcmp(path, "/"))
        abort();
    free(text);
    mi_free(path);
    char *zeros = mi_rezalloc(mi_zalloc(10), 300);
    for (int i = 0; i < 300; i++)
        if (zeros[i])
            abort();
    free(zeros);

    lost = mi_malloc(123);
    lost = NULL;
    char *freed = mi_malloc(33);
    mi_free(freed);
    mi_free(freed);
    puts("done");
    return 0;
}
