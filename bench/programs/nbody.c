// Gravity between five bodies: floating point in straight loops.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BODIES = 5 };

static double position[BODIES][3], velocity[BODIES][3], mass[BODIES];

static void advance(double dt)
{
    for (int i = 0; i < BODIES; i++)
        for (int j = i + 1; j < BODIES; j++) {
            double d[3], square = 0.01;
            for (int k = 0; k < 3; k++) {
                d[k] = position[i][k] - position[j][k];
                square += d[k] * d[k];
            }
            double magnitude = dt / (square * sqrt(square));
            for (int k = 0; k < 3; k++) {
                velocity[i][k] -= d[k] * mass[j] * magnitude;
                velocity[j][k] += d[k] * mass[i] * magnitude;
            }
        }
    for (int i = 0; i < BODIES; i++)
        for (int k = 0; k < 3; k++)
            position[i][k] += dt * velocity[i][k];
}

int main(int argc, char **argv)
{
    for (int i = 0; i < BODIES; i++) {
        mass[i] = 1.0 / (i + 1);
        for (int k = 0; k < 3; k++) {
            position[i][k] = sin(i * 3 + k) * 5;
            velocity[i][k] = cos(i * 5 + k) * 0.1;
        }
    }
    for (long n = atol(argv[1]); n > 0; n--)
        advance(0.001);
    printf("%.9f %.9f\n", position[0][0], position[4][2]);
    return 0;
}
