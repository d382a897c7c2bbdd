// Many errors: the limits, and how errors are told apart and counted.
//
// case many_distinct -DCOUNT=30
// case many_over_100 -DCOUNT=150
// case many_over_1000 -DCOUNT=1100 -DREPEAT=1
// case many_over_1000_no_limit -DCOUNT=1100 --error-limit=no
// case many_same -DCOUNT=1 -DREPEAT=5000
// case many_callers -DCOUNT=6 -DDEPTH=20
// case many_callers_4 -DCOUNT=6 -DDEPTH=20 --num-callers=4
// case many_callers_30 -DCOUNT=6 -DDEPTH=20 --num-callers=30
// case many_below_main -DCOUNT=2 --show-below-main=yes
// case many_without_list -DCOUNT=3 plain --leak-check=full
// case many_list_all -DCOUNT=3 plain --show-error-list=yes
#ifndef REPEAT
#define REPEAT 2
#endif
#ifndef DEPTH
#define DEPTH 0
#endif
#include <stdlib.h>

volatile int kept;

#define BAD(n) case n: block[10 + n % 5] = 1; break; // bug
#define TEN(n) BAD(n##0) BAD(n##1) BAD(n##2) BAD(n##3) BAD(n##4) BAD(n##5) BAD(n##6) BAD(n##7) BAD(n##8) BAD(n##9)
#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)

__attribute__((noinline)) static void touch(char *block, int which)
{
    switch (which + 1000) {
        HUNDRED(10) // bug
        HUNDRED(11) // bug
        HUNDRED(12) // bug
        HUNDRED(13) // bug
        HUNDRED(14) // bug
        HUNDRED(15) // bug
        HUNDRED(16) // bug
        HUNDRED(17) // bug
        HUNDRED(18) // bug
        HUNDRED(19) // bug
        HUNDRED(20) // bug
        HUNDRED(21) // bug
    }
}

__attribute__((noinline)) static void deep(char *block, int which, int depth)
{
    if (depth)
        deep(block, which, depth - 1); // bug
    else
        touch(block, which); // bug
    kept++;
}

int main(void)
{
    char *block = malloc(10);
    for (int repeat = 0; repeat < REPEAT; repeat++)
        for (int which = 0; which < COUNT; which++)
            deep(block, which, which % 2 ? DEPTH : 0); // bug
    free(block);
    return 0;
}
