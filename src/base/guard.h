/*
 * guard: runs code that reads a hostile file, and survives its faults.
 *
 * libelf and libdw map files into memory. A file that shrinks meanwhile raises SIGBUS, and damaged
 * tables can make the libraries crash or fail an assertion. The work then stops at that point, and
 * guard_run returns false. The caller must not touch the objects it worked on again (their memory
 * stays allocated). Guards may be nested; an inner one is cheaper. Supervisor only.
 */
#ifndef QUERN_BASE_GUARD_H
#define QUERN_BASE_GUARD_H

#include <stdbool.h>

/* false: the work raised SIGSEGV, SIGBUS, SIGFPE or SIGABRT, or called guard_give_up. */
bool guard_run(void (*work)(void *context), void *context);

/* Ends the running work. Call it within guard_run, on the same thread. */
_Noreturn void guard_give_up(void);

#endif
