// A random script of what programs do to memory. After each step, everything that is known about
// the bytes concerned is printed: their state, their undefined bits and their values.
// Arguments: seed, steps. Under Valgrind and under Quern, the output must be the same.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <valgrind/memcheck.h>

enum { PLACES = 12, PAGE = 4096 };

static struct {
    unsigned char *start;
    size_t size;
    int mapped;
} places[PLACES];

static uint64_t state;

static uint64_t below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % limit;
}

static uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x9e3779b97f4a7c15 + (sum >> 29);
}

// Bits are read a page at a time; a page of which a part is not addressable, byte by byte.
static uint64_t state_of(const unsigned char *start, size_t size)
{
    unsigned char bits[PAGE];
    uint64_t sum = 0;
    for (size_t at = 0; at < size; at += PAGE) {
        size_t part = size - at < PAGE ? size - at : PAGE;
        int whole = VALGRIND_GET_VBITS(start + at, bits, part);
        for (size_t i = 0; i < part; i++) {
            int answer = whole == 1 ? 1 : VALGRIND_GET_VBITS(start + at + i, &bits[i], 1);
            sum = mix(sum, answer == 1 ? bits[i] : 256 + answer);
        }
    }
    return sum;
}

static uint64_t content_of(unsigned char *start, size_t size)
{
    // The values of undefined bits are no matter.
    unsigned char bits[PAGE], bytes[PAGE];
    uint64_t sum = 0;
    for (size_t at = 0; at < size; at += PAGE) {
        size_t part = size - at < PAGE ? size - at : PAGE;
        VALGRIND_GET_VBITS(start + at, bits, part);
        memcpy(bytes, start + at, part);
        VALGRIND_MAKE_MEM_DEFINED(bytes, part);
        for (size_t i = 0; i < part; i++)
            sum = mix(sum, bytes[i] & ~bits[i]);
    }
    return sum;
}

static size_t some_size(void)
{
    switch (below(8)) {
    case 0:
        return 1 + below(100);
    case 1:
        return 300000 + below(600000); // a slab of its own
    case 2:
        return 1500000 + below(3000000); // a mapping of its own
    default:
        return 1 + below(70000);
    }
}

static void show(const char *what, unsigned place)
{
    unsigned char *start = places[place].start;
    size_t size = places[place].size;
    if (!start)
        return;
    unsigned long before = places[place].mapped ? 0 : state_of(start - 8, 8);
    unsigned long after = places[place].mapped ? 0 : state_of(start + size, 8);
    printf("%s %u %zu: %lx %lx %lx %lx\n", what, place, size, (unsigned long)state_of(start, size),
           (unsigned long)content_of(start, size), before, after);
}

static void set_bits(unsigned char *start, size_t size)
{
    static const unsigned char usual[] = {0xa5, 0xa5, 0xff, 0, 0x5a, 1};
    unsigned char bits[PAGE];
    unsigned char value = usual[below(sizeof usual)];
    unsigned random = below(2);
    for (size_t at = 0; at < size; at += PAGE) {
        size_t part = size - at < PAGE ? size - at : PAGE;
        for (size_t i = 0; i < part; i++)
            bits[i] = random && below(4) == 0 ? below(256) : value;
        VALGRIND_SET_VBITS(start + at, bits, part);
    }
}

static void part_of(unsigned place, size_t *start, size_t *size)
{
    *start = below(places[place].size);
    *size = 1 + below(places[place].size - *start);
}

static void make(unsigned place)
{
    size_t size = some_size();
    places[place].size = size;
    places[place].mapped = below(4) == 0;
    if (places[place].mapped)
        places[place].start = mmap(NULL, places[place].size = (size + PAGE - 1) & -PAGE,
                                   PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    else
        places[place].start = below(3) ? malloc(size) : calloc(1, size);
    show("make", place);
}

static void drop(unsigned place)
{
    unsigned char *start = places[place].start;
    if (places[place].mapped) {
        munmap(start, places[place].size);
    } else {
        free(start);
        printf("freed %lx\n", (unsigned long)state_of(start, places[place].size));
    }
    places[place].start = NULL;
}

static void resize(unsigned place)
{
    size_t size = places[place].size, old_size = size;
    unsigned char *old = places[place].start, *start;
    unsigned small = below(3);
    if (!small)
        size = some_size();
    else if (small == 1)
        size += 1 + below(size / 8 + 1);
    else
        size += 1 + below(64);
    if (places[place].mapped) {
        size = (size + PAGE - 1) & -PAGE;
        start = mremap(old, old_size, size, MREMAP_MAYMOVE);
    } else {
        start = realloc(old, size);
        if (start != old && state_of(old, 1) != mix(0, 256 + 3))
            printf("the old block can be used\n");
    }
    places[place].start = start;
    places[place].size = size;
    show("resize", place);
}

static void copy(unsigned place)
{
    unsigned other = below(PLACES);
    size_t start, size, to;
    if (!places[other].start)
        return;
    part_of(place, &start, &size);
    to = below(places[other].size);
    if (size > places[other].size - to)
        size = places[other].size - to;
    memmove(places[other].start + to, places[place].start + start, size);
    show("copy", other);
}

static void step(void)
{
    unsigned place = below(PLACES);
    size_t start, size;
    if (!places[place].start) {
        make(place);
        return;
    }
    part_of(place, &start, &size);
    unsigned char *at = places[place].start + start;
    switch (below(10)) {
    case 0:
        drop(place);
        return;
    case 1:
    case 2:
    case 3:
        resize(place);
        return;
    case 4:
    case 5:
        copy(place);
        return;
    case 6:
        memset(at, below(256), size);
        break;
    case 7:
        set_bits(at, size);
        break;
    case 8:
        VALGRIND_MAKE_MEM_UNDEFINED(at, size);
        break;
    default:
        for (size_t i = 0; i < size && i < 1000; i++)
            at[i] = below(256);
    }
    show("change", place);
}

int main(int argc, char **argv)
{
    state = strtoul(argv[1], NULL, 10) * 0x9e3779b97f4a7c15 + 1;
    for (long left = strtol(argv[2], NULL, 10); left > 0; left--)
        step();
    for (unsigned place = 0; place < PLACES; place++)
        show("end", place);
    return 0;
}
