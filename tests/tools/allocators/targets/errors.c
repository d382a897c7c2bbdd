// The same errors through any allocator: CALL(name) is the name of its function.
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef CALL
#define CALL(name) name
#endif

extern void *CALL(malloc)(size_t);
extern void *CALL(calloc)(size_t, size_t);
extern void *CALL(realloc)(void *, size_t);
extern void CALL(free)(void *);
extern int CALL(posix_memalign)(void **, size_t, size_t);
extern void *CALL(aligned_alloc)(size_t, size_t);
extern size_t CALL(malloc_usable_size)(void *);

void *volatile kept; // what is stored here last is reachable
static volatile int sink;

__attribute__((noinline)) static void *hide(void *block) {
    __asm__ volatile("" : "+r"(block));
    return block;
}

__attribute__((noinline)) static void lose(void) {
    memset(CALL(malloc)(100), 1, 100);
    sink = *(char *)CALL(calloc)(5, 10);
    void *block = CALL(malloc)(10);
    block = CALL(realloc)(block, 300);
    memset(block, 2, 300);
    void *aligned = NULL;
    if (CALL(posix_memalign)(&aligned, 256, 1000) || (uintptr_t)aligned % 256)
        abort();
    block = CALL(aligned_alloc)(64, 128);
    if ((uintptr_t)block % 64 || CALL(malloc_usable_size)(block) < 128)
        abort();
}

__attribute__((noinline)) static void use_after_free(void) {
    char *block = hide(CALL(malloc)(40));
    block[0] = 1;
    CALL(free)(block);
    sink = ((char *)hide(block))[3];
}

__attribute__((noinline)) static void run_over(void) {
    char *block = hide(CALL(malloc)(24));
    block[24] = 1;
    CALL(free)(block);
}

__attribute__((noinline)) static void free_twice(void) {
    char *block = hide(CALL(malloc)(48));
    CALL(free)(block);
    CALL(free)(hide(block));
}

static void *work(void *unused) {
    void *blocks[64] = {0};
    for (unsigned i = 0; i < 20000; i++) {
        unsigned slot = i * 7 % 64;
        if (i % 3) {
            CALL(free)(blocks[slot]);
            blocks[slot] = CALL(malloc)(i % 500 + 1);
        } else {
            blocks[slot] = CALL(realloc)(blocks[slot], i % 700 + 1);
        }
        memset(blocks[slot], (int)i, i % 3 ? i % 500 + 1 : i % 700 + 1);
    }
    for (unsigned i = 0; i < 64; i++)
        CALL(free)(blocks[i]);
    return NULL;
}

#ifdef EXTRAS
extern void *CALL(mallocx)(size_t, int);
extern void *CALL(rallocx)(void *, size_t, int);
extern size_t CALL(xallocx)(void *, size_t, size_t, int);
extern size_t CALL(sallocx)(const void *, int);
extern size_t CALL(nallocx)(size_t, int);
extern void CALL(dallocx)(void *, int);
extern void CALL(sdallocx)(void *, size_t, int);

// Aligned to 512 and zero.
__attribute__((noinline)) static void use_extras(void) {
    char *block = CALL(mallocx)(700, 9 | 0x40);
    if ((uintptr_t)block % 512 || CALL(sallocx)(block, 0) < 700 || CALL(nallocx)(700, 0) < 700)
        abort();
    for (int i = 0; i < 700; i++)
        if (block[i])
            abort();
    if (CALL(xallocx)(block, 1 << 30, 0, 0) < 700)
        abort();
    block[699] = 5;
    block = CALL(rallocx)(block, 2000, 9 | 0x40);
    if ((uintptr_t)block % 512 || block[699] != 5 || block[1999])
        abort();
    CALL(sdallocx)(block, 2000, 9);
    CALL(dallocx)(CALL(malloc)(9), 0);
    CALL(free)(CALL(mallocx)(11, 0));
    kept = CALL(mallocx)(77, 0);
    kept = NULL; // 77 bytes are lost
}
#endif

int main(int argc, char **argv) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    lose();
#ifdef EXTRAS
    use_extras();
#endif
    if (argc > 1) {
        use_after_free();
        run_over();
        free_twice();
    }
    kept = CALL(malloc)(12);
    puts("done");
    return 0;
}
