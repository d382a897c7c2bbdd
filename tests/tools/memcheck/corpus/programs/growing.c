// Blocks that realloc has grown in small steps: everything around and inside them is still known.
//
// case growing_after_end -DWHAT=1
// case growing_before_start -DWHAT=2
// case growing_far_after_end -DWHAT=3
// case growing_undefined_step -DWHAT=4
// case growing_undefined_step_origin -DWHAT=4 --track-origins=yes
// case growing_undefined_start_origin -DWHAT=5 --track-origins=yes
// case growing_freed -DWHAT=6
// case growing_lost -DWHAT=7
// case growing_shrunk -DWHAT=8
// case growing_huge_after_end -DWHAT=1 -DHUGE=1
// case growing_huge_undefined_step -DWHAT=4 -DHUGE=1
// case growing_huge_undefined_step_origin -DWHAT=4 -DHUGE=1 --track-origins=yes
// case growing_huge_undefined_start_origin -DWHAT=5 -DHUGE=1 --track-origins=yes
// case growing_huge_freed -DWHAT=6 -DHUGE=1
// case growing_huge_shrunk -DWHAT=8 -DHUGE=1
// case growing_own_slab_after_end -DWHAT=1 -DHUGE=2
// case growing_own_slab_freed -DWHAT=6 -DHUGE=2
// case growing_filled -DWHAT=4 --malloc-fill=0x33 --free-fill=0x44
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if HUGE == 1
enum { FIRST = 3000000, STEP = 70000 };
#elif HUGE == 2
enum { FIRST = 100000, STEP = 3000 };
#else
enum { FIRST = 2000, STEP = 24 };
#endif

volatile int kept;

static size_t size = FIRST;

static char *make(void)
{
    char *block = malloc(FIRST);
    memset(block + 16, 1, FIRST - 16); // the first bytes stay undefined
    return block;
}

// Leaves the last step undefined.
static char *grow(char *block, int steps)
{
    while (steps--) {
        block = realloc(block, size + STEP); // leak
        if (steps)
            memset(block + size, 2, STEP);
        size += STEP;
    }
    return block;
}

int main(void)
{
    char *block = grow(make(), 7), *other;
    switch (WHAT) {
    case 1:
        kept = block[size - STEP - 1];
        kept = block[size]; // bug
        block[size + 3] = 1; // bug
        break;
    case 2:
        kept = block[-1]; // bug
        block[-8] = 1; // bug
        break;
    case 3:
        block[size + 12] = 1; // bug
        block = grow(block, 1);
        block[size - 2] = 1;
        block[size + 12] = 1; // bug
        break;
    case 4:
        if (block[size - STEP - 1] == 3)
            puts("no");
        if (block[size - 1] == 3) // bug
            puts("no");
        break;
    case 5:
        if (block[3] == 3) // bug
            puts("no");
        block = grow(block, 1);
        if (block[4] == 3) // bug
            puts("no");
        break;
    case 6:
        free(block);
        kept = block[100]; // bug
        kept = block[size - 1]; // bug
        kept = block[size]; // bug
        return 0;
    case 7:
        block = NULL;
        break;
    case 8:
        other = realloc(block, FIRST / 2);
        kept = other[FIRST / 2]; // bug
        kept = block[20]; // bug
        block = other;
        break;
    }
    free(block);
    return 0;
}
