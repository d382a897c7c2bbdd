// Client requests that concern memory, with the numbers of valgrind.h and memcheck.h. Called from
// the tool's hook for requests, on the thread that makes one.
#ifndef QUERN_MEMCHECK_REQUESTS_H
#define QUERN_MEMCHECK_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The answer of the request; false: not one of memcheck's.
bool requests_answer(const uint64_t words[6], uint64_t *result);
void requests_forked(void); // in the child

// What the target has declared at an address, for descriptions: a block of CREATE_BLOCK, or a chunk
// of a memory pool. Chunks of metapools contain other blocks, and have a question of their own.
struct request_block {
    uint64_t start;
    size_t size;
    uint32_t made_at; // a stack
    char name[64];    // as the target calls it
};
bool requests_describe(uint64_t address, struct request_block *);
bool requests_describe_metapool(uint64_t address, struct request_block *);
// Whether the target does not want to hear of bad accesses there.
bool requests_ignore(uint64_t address);

#endif
