// Messages of the engine for people. The supervisor prints them.
//
// From any thread, not from signal handlers: they format with the C library. Longer texts are cut
// off.
#ifndef QUERN_ENGINE_LOG_H
#define QUERN_ENGINE_LOG_H

#include <stdarg.h>

// `--PID-- text`, for --trace-… and --debug-… options.
__attribute__((format(printf, 1, 2))) void log_debug(const char *format, ...);
// `==PID== text`, at one of wire_text's levels; log_notice: at level 0.
__attribute__((format(printf, 1, 2))) void log_notice(const char *format, ...);
void log_notice_list(int level, const char *format, va_list);

#endif
