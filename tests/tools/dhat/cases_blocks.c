// Lives of blocks: how they come, grow, are used and go.
#include "cases.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct node *push(struct node *list, int value) {
    struct node *node = malloc(sizeof *node);
    node->next = list;
    node->value = value;
    return node;
}

void drop(struct node *list) {
    while (list) {
        struct node *next = list->next;
        free(list);
        list = next;
    }
}

static void list(void) {
    struct node *all = NULL;
    for (int i = 0; i < 100; i++)
        all = push(all, i);
    for (struct node *node = all; node; node = node->next)
        sink += node->value;
    drop(all);
}

static void leak(void) {
    struct node *all = NULL;
    for (int i = 0; i < 30; i++)
        all = push(all, i);
    drop(all->next->next);
}

static void array(void) {
    int *numbers = malloc(5000 * sizeof *numbers);
    for (int i = 0; i < 5000; i++)
        numbers[i] = i;
    for (int i = 0; i < 5000; i += 2)
        sink += numbers[i];
    free(numbers);
}

static void zeroed(void) {
    for (int i = 1; i < 40; i++) {
        char *block = calloc(i, 3);
        sink += block[i];
        free(block);
    }
    long *large = calloc(100000, sizeof *large);
    sink += large[77777];
    free(large);
    large = calloc(100000, sizeof *large);
    large[5]++;
    free(large);
}

static void grow(void) {
    char *block = NULL;
    for (size_t size = 1; size < 50000; size = size * 3 / 2 + 1) {
        block = realloc(block, size);
        block[size - 1] = 1;
    }
    free(block);
}

static void shrink(void) {
    char *block = malloc(1000);
    memset(block, 1, 1000);
    for (size_t size = 900; size > 0; size -= 100)
        block = realloc(block, size);
    block[50] = 2;
    free(block);
}

static void resize_same(void) {
    char *block = malloc(64);
    block[0] = 1;
    block = realloc(block, 64);
    block[1] = block[0];
    block = realloc(block, 65);
    block[64] = 3;
    free(block);
}

static void resize_to_nothing(void) {
    char *block = malloc(10);
    block = realloc(block, 0);
    free(block);
    block = realloc(NULL, 0);
    sink += block != NULL;
    free(block);
}

static void nothing(void) {
    void *blocks[20];
    for (int i = 0; i < 20; i++)
        blocks[i] = malloc(0);
    for (int i = 0; i < 10; i++)
        free(blocks[i]);
    free(NULL);
    free(calloc(0, 8));
}

static void aligned(void) {
    void *block;
    for (size_t alignment = 16; alignment <= 65536; alignment *= 4) {
        if (posix_memalign(&block, alignment, 100) == 0) {
            ((char *)block)[99] = 1;
            sink += (uintptr_t)block % alignment;
            free(block);
        }
        block = memalign(alignment, 30);
        ((char *)block)[29] = 1;
        free(block);
        block = aligned_alloc(alignment, 3 * alignment);
        ((char *)block)[2 * alignment] = 1;
        free(block);
    }
    free(valloc(10));
    if (posix_memalign(&block, 3, 100) == 0)
        abort();
}

static void untouched(void) {
    for (int i = 0; i < 10; i++)
        free(malloc(500));
    sink += malloc(70) != NULL;
}

static void written_only(void) {
    short *block = malloc(64 * sizeof *block);
    for (int i = 0; i < 64; i += 3)
        block[i] = i;
}

static void pattern(void) {
    for (int i = 0; i < 7; i++) {
        char *block = malloc(64);
        for (int j = 0; j < 64; j++)
            for (int k = 0; k < j % 5; k++)
                block[j] = k;
        *(long *)(block + 8) = *(int *)(block + 4);
        free(block);
    }
}

static char *of_point_a(size_t size) {
    return malloc(size);
}

static char *of_point_b(size_t size) {
    return malloc(size);
}

static void peaks(void) {
    char *a = of_point_a(1000), *b = of_point_b(500);
    free(a);
    a = of_point_a(1000); // as high as before
    free(b);
    b = of_point_b(200);
    char *c = of_point_b(250);
    free(a);
    free(b);
    b = of_point_b(700); // its own peak, below the global one
    free(b);
    free(c);
}

static void peak_at_end(void) {
    for (int i = 1; i < 20; i++)
        of_point_a(i * 10)[0] = of_point_b(i)[0];
}

static void sizes(void) {
    for (int i = 1; i <= 40; i++) {
        char *block = of_point_a(i * 8);
        block[i] = block[0];
        free(block);
    }
    for (int i = 0; i < 4; i++) {
        char *block = of_point_b(33);
        block[32] = 1;
        free(block);
    }
}

static void limit(void) {
    for (int i = 0; i < 3; i++) {
        char *at = of_point_a(1024), *over = of_point_b(1025);
        at[1023] = over[1024] = at[0] = over[0];
        free(at);
        free(over);
    }
}

static void hot(void) {
    volatile char *block = malloc(3);
    for (int i = 0; i < 70000; i++)
        block[1]++;
    free((void *)block);
}

static void beyond(void) {
    char *block = malloc(12);
    memset(block, 0, 12);
    *(volatile long *)(block + 8) = 1; // four bytes too many
    sink += *(volatile int *)(block + 9);
    sink += *(volatile char *)(block + 12);
    sink += *(volatile char *)(block - 1);
    free(block);
}

static char *deep(int level) {
    return level ? deep(level - 1) : malloc(40);
}

static void recursion(void) {
    for (int i = 0; i < 20; i++)
        free(deep(i));
}

static void large(void) {
    for (size_t size = 100000; size < 300000000; size *= 5) {
        char *block = malloc(size);
        block[0] = block[size - 1] = 1;
        sink += block[size / 2];
        free(block);
    }
    long *sparse = calloc(50000000, sizeof *sparse);
    sparse[49999999] = 1;
    sparse = realloc(sparse, 500000000);
    sparse[0] = 2;
    free(sparse);
}

static void many(void) {
    enum { BLOCKS = 3000 };
    static char *blocks[BLOCKS];
    unsigned random = 1;
    for (int i = 0; i < 20000; i++) {
        random = random * 1103515245 + 12345;
        unsigned at = random >> 16 & 2047, size = (random >> 8 & 255) + 1;
        if (blocks[at]) {
            sink += blocks[at][0];
            free(blocks[at]);
            blocks[at] = NULL;
        } else {
            blocks[at] = malloc(size);
            blocks[at][0] = blocks[at][size - 1] = i;
        }
    }
}

static void usable(void) {
    char *block = malloc(101);
    size_t size = malloc_usable_size(block);
    block[size - 1] = 1;
    sink += malloc_usable_size(NULL);
    free(block);
}

static void arrays(void) {
    long *block = reallocarray(NULL, 10, sizeof *block);
    block[9] = 1;
    block = reallocarray(block, 20, sizeof *block);
    block[19] = block[9];
    volatile size_t huge = SIZE_MAX / 2;
    sink += reallocarray(NULL, huge, 8) == NULL;
    free(block);
}

static void refused(void) {
    volatile size_t huge = SIZE_MAX / 2 + 9;
    sink += malloc(huge) == NULL;
    sink += calloc(huge, 4) == NULL;
    char *block = malloc(20);
    sink += realloc(block, huge) == NULL;
    block[3] = 1;
    free(block);
}

static void wrong_frees(void) {
    static char buffer[64];
    char *volatile block = malloc(50);
    free(block + 16);
    free(buffer + 16);
    block[20] = 1;
    free(block);
    free(block);
}

const struct test_case blocks_cases[] = {
    CASE(list),
    CASE(leak),
    CASE(array),
    CASE(zeroed),
    CASE(grow),
    CASE(shrink),
    CASE(resize_same),
    CASE(resize_to_nothing),
    CASE(nothing),
    CASE(aligned),
    CASE(untouched),
    CASE(written_only),
    CASE(pattern),
    CASE(peaks),
    CASE(peak_at_end),
    CASE(sizes),
    CASE(limit),
    CASE(hot),
    CASE(beyond),
    CASE(recursion),
    CASE(large),
    CASE(many),
    CASE(usable),
    CASE(arrays),
    CASE(refused),
    CASE(wrong_frees),
    {0},
};
