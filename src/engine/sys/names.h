// Names of system calls, for tracing.
#ifndef QUERN_ENGINE_SYS_NAMES_H
#define QUERN_ENGINE_SYS_NAMES_H

// "syscall N" style text for unknown ones lives in a static buffer.
const char *sys_name(long number);

#endif
