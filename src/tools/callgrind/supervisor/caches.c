#include "tools/callgrind/supervisor/caches.h"

#include <cpuid.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_LINE = 16 };

static bool is_power_of_two(uint64_t number) {
    return number && !(number & (number - 1));
}

// ---- options -----------------------------------------------------------------------------------

static bool read_number(const char **at, char end, uint64_t most, uint64_t *number) {
    char *rest;
    errno = 0;
    *number = strtoull(*at, &rest, 10);
    if (rest == *at || **at == '-' || errno || *rest != end || *number > most || !*number)
        return false;
    *at = rest + (end != 0);
    return true;
}

static const char *fault_of(const struct cache_shape *shape) {
    if (!is_power_of_two(shape->line))
        return "the line's size is not a power of two";
    if (shape->line < LEAST_LINE)
        return "a line has at least 16 bytes";
    if (shape->size < (uint64_t)shape->line * shape->assoc)
        return "the size is less than that of one set of lines";
    if (shape->size % ((uint64_t)shape->line * shape->assoc) ||
        !is_power_of_two(shape->size / shape->line / shape->assoc))
        return "the number of sets (size / associativity / line) is not a power of two";
    return NULL;
}

void cache_parse(const char *text, struct cache_shape *shape, struct text *reason) {
    const char *at = text;
    uint64_t size, assoc, line;
    if (!read_number(&at, ',', 1ull << 40, &size) || !read_number(&at, ',', 1 << 24, &assoc) ||
        !read_number(&at, 0, 1 << 24, &line)) {
        text_string(reason, "expected SIZE,ASSOC,LINE, three numbers");
        return;
    }
    *shape = (struct cache_shape){size, (uint32_t)assoc, (uint32_t)line};
    const char *fault = fault_of(shape);
    if (fault)
        text_string(reason, fault);
}

// ---- the processor -----------------------------------------------------------------------------

// Intel and others list one cache after the other.
static bool detect_listed(struct cache_shape shapes[CACHE_KINDS]) {
    unsigned a, b, c, d, best = 0;
    if (__get_cpuid_max(0, NULL) < 4)
        return false;
    for (unsigned i = 0; i < 16; i++) {
        __cpuid_count(4, i, a, b, c, d);
        unsigned type = a & 31, level = a >> 5 & 7;
        if (!type)
            break;
        struct cache_shape shape = {.assoc = (b >> 22) + 1, .line = (b & 0xfff) + 1};
        shape.size =
            (uint64_t)shape.assoc * ((b >> 12 & 0x3ff) + 1) * shape.line * ((uint64_t)c + 1);
        if (level == 1 && type == 1)
            shapes[CACHE_D1] = shape;
        else if (level == 1 && type == 2)
            shapes[CACHE_I1] = shape;
        else if (type == 3 && level > best) {
            shapes[CACHE_LL] = shape;
            best = level;
        }
    }
    return best && shapes[CACHE_D1].size && shapes[CACHE_I1].size;
}

static uint32_t amd_assoc(unsigned code, uint64_t size, uint32_t line) {
    static const uint8_t known[16] = {[2] = 2,   [4] = 4,   [6] = 8,   [8] = 16,  [10] = 32,
                                      [11] = 48, [12] = 64, [13] = 96, [14] = 128};
    if (code == 15 && line)
        return (uint32_t)(size / line);
    return known[code] ? known[code] : 1;
}

static struct cache_shape amd_first_level(unsigned word) {
    return (struct cache_shape){(uint64_t)(word >> 24) * 1024, word >> 16 & 0xff, word & 0xff};
}

static bool detect_amd(struct cache_shape shapes[CACHE_KINDS], struct text *remarks) {
    unsigned a, b, c, d;
    if (__get_cpuid_max(0x80000000, NULL) < 0x80000006)
        return false;
    __cpuid(0x80000005, a, b, c, d);
    shapes[CACHE_D1] = amd_first_level(c);
    shapes[CACHE_I1] = amd_first_level(d);
    __cpuid(0x80000006, a, b, c, d);
    struct cache_shape last = {(uint64_t)(c >> 16) * 1024, 0, c & 0xff};
    last.assoc = amd_assoc(c >> 12 & 15, last.size, last.line);
    if (d >> 18) {
        last = (struct cache_shape){(uint64_t)(d >> 18) * 512 * 1024, 0, d & 0xff};
        last.assoc = amd_assoc(d >> 12 & 15, last.size, last.line);
        text_string(remarks, "warning: L3 cache found, using its data for the LL simulation.\n");
    }
    shapes[CACHE_LL] = last;
    return last.size && shapes[CACHE_D1].size && shapes[CACHE_I1].size;
}

static void add_shape(struct text *out, const char *word, const struct cache_shape *shape) {
    struct text number = {0};
    text_format(&number, "%llu", (unsigned long long)shape->size);
    text_format(out, "warning: %s LL cache: line_size %u  assoc %u  total_size ", word, shape->line,
                shape->assoc);
    for (size_t i = 0; i < number.size; i++) {
        if (i && (number.size - i) % 3 == 0)
            text_char(out, ',');
        text_char(out, number.bytes[i]);
    }
    text_char(out, '\n');
    text_free(&number);
}

// A shared last level may have any number of sets. Rounds it down to a power of two and raises the
// associativity to keep the size.
static void round_sets(struct cache_shape *shape, struct text *remarks) {
    uint64_t sets = shape->size / shape->assoc / shape->line;
    if (is_power_of_two(sets) || !sets)
        return;
    uint64_t rounded = 1ull << (63 - __builtin_clzll(sets));
    add_shape(remarks, "specified", shape);
    shape->assoc = (uint32_t)(0.5 + (double)sets / (double)rounded * shape->assoc);
    shape->size = rounded * shape->assoc * shape->line;
    add_shape(remarks, "simulated", shape);
}

void caches_detect(struct cache_shape shapes[CACHE_KINDS], struct text *remarks) {
    static const struct cache_shape usual[CACHE_KINDS] = {
        {65536, 2, 64}, {65536, 2, 64}, {262144, 8, 64}};
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d);
    bool amd = memcmp(&b, "Auth", 4) == 0 || memcmp(&b, "Hygo", 4) == 0;
    memset(shapes, 0, CACHE_KINDS * sizeof *shapes);
    if (!(amd ? detect_amd(shapes, remarks) : detect_listed(shapes))) {
        memcpy(shapes, usual, sizeof usual);
        text_string(remarks, "warning: the processor does not report its caches; using defaults\n");
    }
    round_sets(&shapes[CACHE_LL], remarks);
    for (unsigned i = 0; i < CACHE_KINDS; i++) {
        if (fault_of(&shapes[i])) {
            shapes[i] = usual[i];
            text_format(remarks,
                        "warning: the processor's cache %u cannot be simulated; using a "
                        "default\n",
                        i + 1);
        }
    }
}
