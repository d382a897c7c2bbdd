// Client requests that concern memory: valgrind.h's and memcheck.h's numbering.
#ifndef QUERN_MEMCHECK_REQUESTS_H
#define QUERN_MEMCHECK_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

bool requests_answer(const uint64_t words[6], uint64_t *result);

#endif
