// Two errors: a read behind a block, and a jump that depends on it.
#include <stdio.h>
#include <stdlib.h>

int total = 5;

static int sum(int count) {
    int *values = malloc(count * sizeof *values);
    int result = 0;
    for (int i = 0; i <= count; i++)
        result += values[i];
    if (result)
        total++;
    free(values);
    return result;
}

int main(void) {
    double half = 1.5;
    sum(10);
    total += 2;
    printf("total %s %f\n", total > 6 ? "large" : "small", half);
    return 7;
}
