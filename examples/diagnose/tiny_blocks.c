// A million points, each in a block of its own. Fixed: they are in one array.
#include <stdlib.h>

#include "common.h"

enum { POINTS = 200000 };

struct point {
    float x, y;
};

static struct point **points;

static struct point *new_point(unsigned i, struct point *array) {
    struct point *point = IS_FIXED ? &array[i] : malloc(sizeof *point);
    point->x = (float)i;
    point->y = 0;
    return point;
}

int main(void) {
    struct point *array = IS_FIXED ? malloc(POINTS * sizeof *array) : NULL;
    points = malloc(POINTS * sizeof *points);
    for (unsigned i = 0; i < POINTS; i++)
        points[i] = new_point(i, array);
    return points[10]->y > 1;
}
