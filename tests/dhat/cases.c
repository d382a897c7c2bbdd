// Small programs, one for each argument, whose heap dhat is asked about. What they do is the same
// in every run. Compiled without optimisation, so that what is written is what happens.
#include <cpuid.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>
#include <xmmintrin.h>
#include <valgrind/dhat.h>

static volatile long sink;

struct node {
    struct node *next;
    int value, padding;
};

static struct node *push(struct node *list, int value) {
    struct node *node = malloc(sizeof *node);
    node->next = list;
    node->value = value;
    return node;
}

static void drop(struct node *list) {
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

static void repeated(void) {
    char *a = malloc(200), *b = malloc(200);
    void *to = a, *from = b;
    size_t count = 150;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
    to = b, from = a, count = 18;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    b[33] = 8;
    to = b, from = a, count = 100;
    __asm__ volatile("repe cmpsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    to = b, count = 100;
    __asm__ volatile("repne scasb" : "+D"(to), "+c"(count) : "a"(8) : "memory");
    to = b, from = a;
    __asm__ volatile("movsl; lodsw; stosb" : "+D"(to), "+S"(from) : : "rax", "memory");
    to = b + 99, from = a + 99, count = 50;
    __asm__ volatile("std; rep movsb; cld" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    count = 0;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
    free(a);
    free(b);
}

// Counts far above a page, up and down.
static void repeated_far(void) {
    enum { SIZE = 100000 };
    char *a = malloc(SIZE), *b = malloc(SIZE);
    void *to = a, *from;
    size_t count = SIZE;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
    to = b, from = a, count = SIZE / 8;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    b[SIZE - 100] = 8;
    to = b, from = a, count = SIZE;
    __asm__ volatile("repe cmpsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    to = b, count = SIZE;
    __asm__ volatile("repne scasb" : "+D"(to), "+c"(count) : "a"(8) : "memory");
    to = b + SIZE - 2, from = a + SIZE - 2, count = SIZE / 2 - 7;
    __asm__ volatile("std; rep movsw; cld" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    free(a);
    free(b);
}

static void processor_state(void) {
    char *state = aligned_alloc(16, 512), *more = aligned_alloc(16, 4096);
    __asm__ volatile("fxsave %0" : "=m"(*(char(*)[512])state));
    __asm__ volatile("fxrstor %0" : : "m"(*(char(*)[512])state));
    __asm__ volatile("fxsave64 %0" : "=m"(*(char(*)[512])(more + 1024)));
    free(state);
    free(more);
}

// More than code that is inserted counts by itself.
static void whole_processor_state(void) {
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE))
        return;
    char *state = aligned_alloc(64, 832), *large = aligned_alloc(64, 8192);
    memset(state, 0, 832);
    memset(large, 0, 8192);
    __asm__ volatile("xsave %0" : "+m"(*(char(*)[832])state) : "a"(7), "d"(0));
    __asm__ volatile("xrstor %0" : : "m"(*(char(*)[832])state), "a"(7), "d"(0));
    __asm__ volatile("xsave %0" : "+m"(*(char(*)[832])(large + 128)) : "a"(7), "d"(0));
    free(state);
    free(large);
}

static void atomics(void) {
    _Atomic long *a = calloc(4, sizeof *a);
    long expected = 0;
    atomic_fetch_add(&a[0], 3);
    atomic_exchange(&a[1], 4);
    atomic_compare_exchange_strong(&a[2], &expected, 5);
    atomic_compare_exchange_strong(&a[2], &expected, 6);
    atomic_fetch_or((_Atomic char *)&a[3], 1);
    __asm__ volatile("lock incl %0" : "+m"(a[0]));
    __asm__ volatile("xaddq %1, %0" : "+m"(a[1]), "+r"(expected));
    __asm__ volatile("lock xaddq %1, %0" : "+m"(a[1]), "+r"(expected));
    __asm__ volatile("cmpxchgq %1, %0" : "+m"(a[1]), "+r"(expected) : : "rax");
    free(a);
}

static void bits(void) {
    unsigned long *a = calloc(8, sizeof *a);
    long bit = 300;
    int negative = -9;
    __asm__ volatile("btsq %1, %0" : "+m"(*a) : "r"(bit) : "memory");
    __asm__ volatile("btq %2, %1; adcq $0, %0" : "+r"(bit) : "m"(*a), "r"(bit) : "memory");
    __asm__ volatile("btcl %1, %0" : "+m"(a[2]) : "r"(negative) : "memory");
    __asm__ volatile("lock btrq %1, %0" : "+m"(*a) : "r"(bit) : "memory");
    __asm__ volatile("btsq $5, %0" : "+m"(a[1]) : : "memory");
    __asm__ volatile("notl %0; negb %0; shlw $2, %0; incq %0" : "+m"(a[3]) : : "memory");
    free(a);
}

static void floats(void) {
    long double *a = malloc(3 * sizeof *a);
    double *b = malloc(4 * sizeof *b);
    float *c = malloc(5 * sizeof *c);
    a[0] = 1.5L;
    a[1] = a[0] * 2;
    b[0] = a[1];
    b[1] = b[0] / 3 + 1;
    c[3] = b[1];
    sink += (long)(c[3] * 7);
    free(a);
    free(b);
    free(c);
}

static void vectors(void) {
    float *a = malloc(64 * sizeof *a), *b = malloc(64 * sizeof *b);
    for (int i = 0; i < 64; i += 4)
        _mm_storeu_ps(a + i, _mm_set1_ps(i));
    for (int i = 0; i < 60; i += 3)
        _mm_storeu_ps(b + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(a + 1)));
    _mm_storel_pi((__m64 *)b, _mm_loadh_pi(_mm_setzero_ps(), (__m64 *)a));
    _mm_store_ss(b + 9, _mm_load_ss(a + 3));
    free(a);
    free(b);
}

static void wide_vectors(void) {
    char *a = malloc(256);
    memset(a, 2, 256);
    if (__builtin_cpu_supports("avx2"))
        __asm__ volatile(
            "vmovdqu (%0), %%ymm1; vpaddb 33(%0), %%ymm1, %%ymm1; vmovdqu %%ymm1, 70(%0);"
            "vmovq %%xmm1, 200(%0); vmovd 204(%0), %%xmm2; vzeroupper"
            :
            : "r"(a)
            : "xmm1", "xmm2", "memory");
    free(a);
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

// Valgrind leaves out what lies less than 16 KiB above the stack pointer, heap or not.
static void *use_block(void *argument) {
    volatile char away[65536] = {0};
    char *block = malloc(100);
    sink += away[0];
    memset(block, 1, 100);
    sink += block[(long)argument];
    free(block);
    return malloc(24);
}

static void threads(void) {
    for (long i = 0; i < 6; i++) {
        pthread_t thread;
        void *block;
        pthread_create(&thread, NULL, use_block, (void *)i);
        pthread_join(thread, &block);
        *(long *)block = i;
        free(block);
    }
}

static void *take_over(void *block) {
    volatile char away[65536] = {0};
    sink += away[0];
    sink += *(long *)block;
    free(block);
    return NULL;
}

static void handed_over(void) {
    for (long i = 0; i < 4; i++) {
        pthread_t thread;
        long *block = malloc(32);
        *block = i;
        pthread_create(&thread, NULL, take_over, block);
        pthread_join(thread, NULL);
    }
}

enum { WORKERS = 3, HELD = 8 };
static pthread_barrier_t all_workers;

static void *work(void *argument) {
    volatile char away[65536] = {0};
    struct node *held = NULL;
    sink += away[0];
    for (int i = 0; i < 3000; i++) {
        struct node *node = push(held, i);
        sink += node->value;
        if (i < HELD)
            held = node;
        else
            free(node);
        if (i + 1 == HELD) {
            pthread_barrier_wait(&all_workers);
            drop(held);
            held = NULL;
            pthread_barrier_wait(&all_workers);
        }
    }
    return NULL;
}

// At the same time: sums do not depend on the order of threads, and no block is shared. The peak is
// where all hold their first blocks; what they hold later is less, whatever the order.
static void at_once(void) {
    pthread_t workers[WORKERS];
    pthread_barrier_init(&all_workers, NULL, WORKERS);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    pthread_barrier_destroy(&all_workers);
}

static void forked(void) {
    char *before = malloc(60);
    before[0] = 1;
    pid_t child = fork();
    if (child == 0) {
        before[1] = 2;
        free(before);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    before[2] = 3;
    free(before);
}

static char *volatile block_of_handler;

static void handle(int number) {
    block_of_handler[number] = 1;
}

static void signals(void) {
    block_of_handler = calloc(1, 64);
    signal(SIGUSR1, handle);
    for (int i = 0; i < 5; i++)
        raise(SIGUSR1);
    free(block_of_handler);
}

static void events(void) {
    for (int i = 0; i < 10; i++)
        DHAT_AD_HOC_EVENT(i);
    DHAT_AD_HOC_EVENT(1000000000000);
    free(malloc(10));
}

static void other_event(void) {
    DHAT_AD_HOC_EVENT(3);
}

static void events_by_stack(void) {
    other_event();
    for (int i = 0; i < 3; i++)
        other_event();
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
#define CASE(name)                                                                                 \
    { #name, name }
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
    CASE(repeated),
    CASE(repeated_far),
    CASE(processor_state),
    CASE(whole_processor_state),
    CASE(atomics),
    CASE(bits),
    CASE(floats),
    CASE(vectors),
    CASE(wide_vectors),
    CASE(calls),
    CASE(stream),
    CASE(sorting),
    CASE(made_by_library),
    CASE(large),
    CASE(many),
    CASE(usable),
    CASE(arrays),
    CASE(refused),
    CASE(wrong_frees),
    CASE(threads),
    CASE(handed_over),
    CASE(at_once),
    CASE(forked),
    CASE(signals),
    CASE(events),
    CASE(events_by_stack),
};

int main(int count, char **words) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (count == 1)
            puts(cases[i].name);
        else if (strcmp(cases[i].name, words[1]) == 0)
            cases[i].run();
    }
    return 0;
}
