// Many blocks that point to each other at random. Lost: a ring of 60,000 with chords, and 90,000
// that are reached from the ring but do not lead back to it. Held: 100,000.
#include "target.h"

enum { RING = 60000, TAIL = 90000, HELD = 100000, WORDS = 4 };

static unsigned long draw(unsigned long below) {
    static unsigned long state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void ***blocks(int count) {
    void ***all = calloc(count, sizeof *all);
    for (int i = 0; i < count; i++)
        all[i] = words(WORDS);
    return all;
}

static void forget(void ***all, int count) {
    memset(all, 0, count * sizeof *all);
    free(all);
}

static void make_lost(void) {
    void ***ring = blocks(RING), ***tail = blocks(TAIL);
    for (int i = RING - 1; i > 0; i--) {
        int other = draw(i + 1);
        void **block = ring[i];
        ring[i] = ring[other];
        ring[other] = block;
    }
    for (int i = 0; i < RING; i++) {
        ring[i][0] = ring[(i + 1) % RING];
        ring[i][1] = ring[draw(RING)];
        ring[i][2] = tail[i];
        ring[i][3] = tail[draw(TAIL)];
    }
    // All of them lead forward only.
    for (int i = 0; i < TAIL - 1; i++) {
        tail[i][0] = i + RING < TAIL ? tail[i + RING] : NULL;
        tail[i][1] = tail[i + 1 + draw(TAIL - 1 - i)];
    }
    void **first = ring[0], **last = ring[0];
    for (int i = 0; i < RING + TAIL; i++) {
        void **block = i < RING ? ring[i] : tail[i - RING];
        first = block < first ? block : first;
        last = block > last ? block : last;
    }
    forget_times(first, last + WORDS);
    forget(ring, RING);
    forget(tail, TAIL);
}

static void make_held(void) {
    void ***all = blocks(HELD);
    for (int i = 0; i < HELD; i++) {
        all[i][0] = all[(i + 1) % HELD];
        all[i][1] = all[draw(HELD)];
    }
    held[0] = all[draw(HELD)];
    forget(all, HELD);
}

int main(void) {
    make_lost();
    make_held();
    wipe();
    return 0;
}
