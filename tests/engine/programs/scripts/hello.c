#include <math.h>
#include <stdio.h>

static double area(double r) { return M_PI * r * r; }

int main(void)
{
    for (int i = 0; i < 3; i++)
        printf("%d %.4f\n", i, area(i));
    return 0;
}
