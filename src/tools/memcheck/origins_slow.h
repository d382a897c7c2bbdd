// The part of origins.c that may use vector registers.
#ifndef QUERN_MEMCHECK_ORIGINS_SLOW_H
#define QUERN_MEMCHECK_ORIGINS_SLOW_H

#include <stdint.h>

enum { ORIGIN_PAGE = 4096 };

struct origin_page {
    struct origin_page *next;
    uint64_t number;
    uint32_t tags[ORIGIN_PAGE / 4];
};

struct origin_search {
    uint64_t address;
    uint32_t origin;
};

void origins_make_page(void *made); // struct origin_page **; stays as it is if there is no memory
void origins_search_heap(void *search);
void origins_search_stack(void *search);

#endif
