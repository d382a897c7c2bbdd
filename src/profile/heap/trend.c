#include "profile/heap/trend.h"

struct trend trend_of(const uint64_t *values, size_t first, size_t end) {
    double count = (double)(end - first), x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    for (size_t i = first; i < end; i++) {
        double at = (double)i, value = (double)values[i] - (double)values[first];
        x += at;
        y += value;
        xx += at * at;
        xy += at * value;
        yy += value * value;
    }
    double across = count * xx - x * x, down = count * yy - y * y, both = count * xy - x * y;
    return (struct trend){both / across, down > 0 ? both * both / (across * down) : 0};
}
