// The engine's last words: a message when it cannot go on, and the end of the process. On any
// thread of the target, whatever locks it holds.
#ifndef QUERN_ENGINE_FATAL_H
#define QUERN_ENGINE_FATAL_H

// Prints `quern: MESSAGE` to the target's stderr and ends the process with status 1.
__attribute__((noreturn, format(printf, 1, 2))) void fatal(const char *format, ...);

#endif
