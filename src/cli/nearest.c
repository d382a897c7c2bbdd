#include "cli/nearest.h"

#include <string.h>

enum { LONGEST = 62, FAR_AWAY = 99 };

// Edit distance; FAR_AWAY for long words.
static size_t distance(const char *a, size_t a_size, const char *b) {
    size_t row[LONGEST + 1];
    size_t b_size = strlen(b);
    if (a_size > LONGEST || b_size > LONGEST)
        return FAR_AWAY;
    for (size_t j = 0; j <= b_size; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t least = row[j - 1] < row[j] ? row[j - 1] + 1 : row[j] + 1;
            row[j] = change < least ? change : least;
        }
    }
    return row[b_size];
}

struct nearest nearest_to(const char *word, size_t size) {
    return (struct nearest){.word = word, .size = size, .distance = size / 3 + 1};
}

void nearest_offer(struct nearest *nearest, const char *candidate) {
    size_t away = distance(nearest->word, nearest->size, candidate);
    if (away < nearest->distance) {
        nearest->found = candidate;
        nearest->distance = away;
    }
}
