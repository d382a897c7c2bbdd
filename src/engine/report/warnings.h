// Warnings about calls that can only fail, for tools that report errors: Valgrind's texts. They are
// no errors: nothing counts or suppresses them, and XML has no place for them.
#ifndef QUERN_ENGINE_REPORT_WARNINGS_H
#define QUERN_ENGINE_REPORT_WARNINGS_H

#include <stdint.h>

// After a system call that has failed.
void warn_about_call(long number, const char *name, const uint64_t arguments[6], long result);
// A handler is set for a signal that cannot have one.
void warn_about_handler(int signal);

#endif
