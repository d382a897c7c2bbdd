/*
 * guard: runs code that reads a hostile file and survives what goes wrong in it.
 *
 * libelf and libdw map files into memory: a file that shrinks while it is read raises SIGBUS, and
 * damaged tables have been seen to lead them astray or into an assertion. The work then stops
 * where it stands and guard_run says so; what it was working on must not be touched again (its
 * memory stays allocated). One may be within another, which is cheaper. Supervisor only.
 */
#ifndef QUERN_SYMBOLS_GUARD_H
#define QUERN_SYMBOLS_GUARD_H

#include <stdbool.h>

/* false: the work raised SIGSEGV, SIGBUS, SIGFPE or SIGABRT, or called guard_give_up. */
bool guard_run(void (*work)(void *context), void *context);

/* Ends the running work from inside. Must be called within guard_run, on its thread. */
_Noreturn void guard_give_up(void);

#endif
