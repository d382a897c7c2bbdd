#include "memory.h"

#include "layout.h"
#include "random.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK 512

// A stretch of memory that forms may write.
struct region {
    uint64_t start;
    unsigned size;
    uint8_t *background;
};
static struct region regions[4];

static void map(uint64_t address, uint64_t size) {
    void *got = mmap((void *)address, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != (void *)address)
        err(2, "cannot map memory at %#lx", address);
}

static void map_region(struct region *region, uint64_t start, unsigned size, unsigned read_only) {
    struct random random = {start & 0xffffffff};
    map(start, size + read_only);
    for (unsigned i = 0; i < size + read_only; i += 8)
        *(uint64_t *)(start + i) = random_next(&random);
    if (read_only && mprotect((void *)(start + size), read_only, PROT_READ))
        err(2, "mprotect");
    *region = (struct region){start, size, malloc(size)};
    memcpy(region->background, (void *)start, size);
}

void memory_map(uint64_t high) {
    map(CONTEXT, CONTEXT_SIZE);
    map_region(&regions[0], AREA_LOW + AREA_DATA, DATA_SIZE, 0x1000);
    map_region(&regions[1], AREA_LOW + AREA_STACK, STACK_SIZE, 0);
    map_region(&regions[2], high + AREA_DATA, DATA_SIZE, 0x1000);
    map_region(&regions[3], high + AREA_STACK, STACK_SIZE, 0);
}

void memory_write(uint64_t address, const void *bytes, unsigned count) {
    for (int i = 0; i < 4; i++) {
        uint64_t start = regions[i].start, end = start + regions[i].size;
        if (address >= end || address + count <= start || address + count < address)
            continue;
        uint64_t from = address < start ? start : address;
        uint64_t to = address + count > end ? end : address + count;
        memcpy((void *)from, (const uint8_t *)bytes + (from - address), to - from);
    }
}

bool memory_read(uint64_t address, void *bytes, unsigned count) {
    for (int i = 0; i < 4; i++)
        if (address >= regions[i].start && address + count <= regions[i].start + regions[i].size) {
            memcpy(bytes, (void *)address, count);
            return true;
        }
    return false;
}

void memory_restore(void (*changed)(uint64_t address, uint64_t value, void *argument),
                    void *argument) {
    for (int i = 0; i < 4; i++)
        for (unsigned at = 0; at < regions[i].size; at += CHUNK) {
            uint64_t *now = (uint64_t *)(regions[i].start + at);
            const uint64_t *before = (const uint64_t *)(regions[i].background + at);
            if (!memcmp(now, before, CHUNK))
                continue;
            for (unsigned word = 0; word < CHUNK / 8; word++)
                if (now[word] != before[word]) {
                    changed((uint64_t)&now[word], now[word], argument);
                    now[word] = before[word];
                }
        }
}
