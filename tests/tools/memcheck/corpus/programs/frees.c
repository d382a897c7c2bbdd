// Frees of what was not allocated, sizes that cannot be meant, moved blocks.
//
// case free_twice -DWHAT=1
// case free_stack -DWHAT=2
// case free_inside -DWHAT=3
// case free_data -DWHAT=4
// case free_code -DWHAT=5
// case free_after_end -DWHAT=6
// case free_text -DWHAT=7
// case free_mapping -DWHAT=8
// case free_null -DWHAT=9 clean
// case free_twice_other_function -DWHAT=10
// case free_twice_O2 -DWHAT=10 -O2 -fno-inline
// case realloc_freed -DWHAT=11
// case realloc_stack -DWHAT=12
// case realloc_old_pointer -DWHAT=13
// case realloc_shrunk -DWHAT=14
// case realloc_grown_uninitialised -DWHAT=15
// case realloc_to_zero -DWHAT=16
// case realloc_null -DWHAT=17 clean
// case realloc_keeps_definedness -DWHAT=18
// case fishy_malloc -DWHAT=19
// case fishy_calloc -DWHAT=20
// case fishy_calloc_members -DWHAT=21
// case fishy_realloc -DWHAT=22
// case fishy_memalign -DWHAT=23
// case free_freed_by_realloc -DWHAT=24
// case usable_size -DWHAT=25 clean
// case posix_memalign_after -DWHAT=26
// case reallocarray_after -DWHAT=27
// case realloc_many -DWHAT=28 clean
// case malloc_huge_fails -DWHAT=29 clean
// case free_low_address -DWHAT=30
// case strdup_after -DWHAT=31
// case getline_leak -DWHAT=32
// case calloc_overflow -DWHAT=33
// case free_twice_xml -DWHAT=1 xml
// case free_twice_static -DWHAT=1 -static alone --show-leak-kinds=definite,possible
// case roundtrip_free -DWHAT=10 roundtrip
// case roundtrip_fishy -DWHAT=19 roundtrip
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

char data[64];
volatile long huge = -1;
volatile int kept;

static void release(void *block)
{
    free(block); // bug
}

static void release_again(void *block)
{
    free(block); // bug
}

int main(void)
{
    char local[64];
    char *block = malloc(100);
    int *numbers;
    (void)local, (void)numbers;
    switch (WHAT) {
    case 1:
        free(block);
        free(block); // bug(free_twice_static): Invalid free() / delete / delete[] / realloc()
        return 0;
    case 2: free(local); break; // bug
    case 3: free(block + 8); break; // bug
    case 4: free(data + 16); break; // bug
    case 5: free(main); break; // bug
    case 6: free(block + 100); break; // bug
    case 7: free("text"); break; // bug
    case 8: free(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); break; // bug
    case 9: free(NULL); break;
    case 10:
        release(block); // bug
        release_again(block); // bug
        return 0;
    case 11:
        free(block);
        block = realloc(block, 200); // bug
        return block != NULL;
    case 12: return realloc(local, 200) != NULL; // bug
    case 13: {
        char *old = block;
        memset(block, 1, 100);
        block = realloc(block, 10000);
        kept = old[3]; // bug
        break;
    }
    case 14:
        memset(block, 1, 100);
        block = realloc(block, 10);
        kept = block[10]; // bug
        break;
    case 15:
        memset(block, 1, 100);
        block = realloc(block, 200);
        if (block[150]) // bug
            kept = 1;
        break;
    case 16:
        block = realloc(block, 0);
        kept = block != NULL;
        free(block);
        block = malloc(7); // leak
        return 0;
    case 17: free(realloc(NULL, 30)); break;
    case 18:
        block[3] = 1;
        block = realloc(block, 5000);
        if (block[3])
            kept = 1;
        if (block[4]) // bug
            kept = 2;
        break;
    case 19: kept = malloc(huge) != NULL; break; // bug
    case 20: kept = calloc(1, huge - 9) != NULL; break; // bug
    case 21: kept = calloc(huge, 1) != NULL; break; // bug
    case 22: kept = realloc(block, huge - 1) != NULL; break; // bug
    case 23: kept = memalign(64, huge - 2) != NULL; break; // bug
    case 24: {
        char *old = block;
        block = realloc(block, 100000);
        free(old); // bug
        break;
    }
    case 25:
        memset(block, 1, malloc_usable_size(block));
        printf("%zu\n", malloc_usable_size(NULL));
        break;
    case 26: {
        void *place;
        if (posix_memalign(&place, 256, 77))
            return 1;
        printf("%d\n", (int)((uintptr_t)place % 256));
        ((char *)place)[77] = 1; // bug
        free(place);
        break;
    }
    case 27:
        block = reallocarray(block, 11, 13);
        block[143] = 1; // bug
        break;
    case 28:
        for (int i = 1; i < 300; i++) {
            block = realloc(block, i * 37 % 1000 + 1);
            block[i * 37 % 1000] = i;
        }
        break;
    case 29: printf("%d\n", malloc((size_t)1 << 46) == NULL); break;
    case 30: free((void *)0x123); break; // bug
    case 31:
        free(block);
        block = strdup("nine char");
        kept = block[10]; // bug
        break;
    case 32: {
        char *line = NULL;
        size_t room = 0;
        FILE *file = fopen("/etc/passwd", "r");
        if (getline(&line, &room, file) < 0) // leak
            return 1;
        fclose(file);
        break;
    }
    case 33:
        kept = calloc((size_t)huge / 2, 16) != NULL; // bug
        block[100] = 1; // bug
        break;
    }
    free(block);
    return 0;
}
