// Prints its arguments; its status is their number.
#include <stdio.h>

int main(int c, char **v) {
    for (int i = 1; i < c; i++)
        printf("[%s]\n", v[i]);
    return c;
}
