#include <stdio.h>

#include "engine/sys/names.h"

// Generated from the kernel's header: NAME(number, "name") for each call.
static const char *const names[512] = {
#define NAME(number, text) [number] = text,
#include "syscall_names.inc"
#undef NAME
};

const char *sys_name(long number) {
    static _Thread_local char unknown[32];
    if (number >= 0 && number < 512 && names[number])
        return names[number];
    snprintf(unknown, sizeof unknown, "syscall %ld", number);
    return unknown;
}
