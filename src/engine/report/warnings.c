#include "engine/report/warnings.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "engine/hooks/hooks.h"
#include "engine/log.h"
#include "engine/report/descriptor_calls.h"
#include "wire/wire_target.h"

static bool is_shown(void) {
    return tool->descriptor_fault && !wire_option_yes("xml");
}

// Not one that was closed: one that no process can have.
static bool is_impossible(int fd) {
    struct rlimit limit;
    return fd < 0 || (getrlimit(RLIMIT_NOFILE, &limit) == 0 && (rlim_t)fd >= limit.rlim_max);
}

static void warn_about_descriptor(long number, const char *name, const uint64_t arguments[6]) {
    struct descriptor_call call = {.uses = -1};
    bool is_copy = number == SYS_dup2 || number == SYS_dup3;
    if (!descriptor_call_of(number, arguments, &call))
        return;
    if (call.uses >= 0 && is_impossible((int)arguments[call.uses]))
        log_notice("Warning: invalid file descriptor %d in syscall %s()", (int)arguments[call.uses],
                   name);
    else if (is_copy && is_impossible((int)arguments[1]))
        log_notice("Warning: invalid file descriptor %d in syscall %s()", (int)arguments[1], name);
}

void warn_about_call(long number, const char *name, const uint64_t arguments[6], long result) {
    if ((result != -EBADF && result != -ENOSYS) || !is_shown())
        return;
    if (result == -EBADF)
        warn_about_descriptor(number, name, arguments);
    else if (strncmp(name, "syscall ", strlen("syscall ")) == 0) // it has none
        log_notice(
            "WARNING: unhandled amd64-linux syscall: %ld; the kernel does not know it either",
            number);
}

void warn_about_handler(int signal) {
    const char *name = signal == SIGKILL ? "SIGKILL" : "SIGSTOP";
    if (!is_shown())
        return;
    log_notice("Warning: ignored attempt to set %s handler in sigaction();", name);
    log_notice("         the %s signal is uncatchable", name);
}
