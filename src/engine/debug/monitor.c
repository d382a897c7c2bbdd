// Commands of gdb's user: `monitor COMMAND`, `vgdb COMMAND`, `quern ctl PID COMMAND`. The engine
// knows those of the core that it can do, the tool in the target its own; the supervisor gets the
// rest, and answers gdb itself.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/debug/channel.h"
#include "engine/debug/stop.h"
#include "engine/hooks/hooks.h"
#include "engine/process.h"
#include "engine/task.h"
#include "wire/wire_target.h"

enum { LINE = 4096, SIGNALS_MOST = 100 };
// Levels of WIRE_MONITOR.
enum { TO_SUPERVISOR = 0, LOG_TO_GDB = 1, LOG_TO_LOG = 2, TEXT_FOR_GDB = 3 };

static const char help[] =
    "general monitor commands:\n"
    "  help                 : print this message\n"
    "  v.wait [<ms>]        : sleep <ms> (default 0) then continue\n"
    "  v.info all_errors    : show all errors found so far\n"
    "  v.info last_error    : show the last error found\n"
    "  v.info location <addr> : show information about location <addr>\n"
    "  v.info n_errs_found [msg] : show the nr of errors found so far and the given msg\n"
    "  v.info open_fds      : show open file descriptors\n"
    "  v.kill               : kill the process\n"
    "  v.clo <option>...    : change options during the run\n"
    "  v.set gdb_output     : output of commands goes to gdb (default)\n"
    "  v.set log_output     : output of commands goes to the log\n"
    "  v.set mixed_output   : answers go to gdb, the log's lines to the log\n"
    "  v.set vgdb-error <errornr> : debug me at error >= <errornr>\n";

static enum { TO_GDB, TO_LOG, MIXED } output;

// By way of the supervisor, so that it is in order with lines of the log.
void debug_answer(const char *format, va_list arguments) {
    static char line[LINE];
    vsnprintf(line, sizeof line, format, arguments);
    if (output == TO_LOG || !debug_attached)
        wire_send_notice(-1, line);
    else
        wire_send_monitor(TEXT_FOR_GDB, line);
}

static void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    debug_answer(format, arguments);
    va_end(arguments);
}

// What the supervisor has written for the command reaches gdb before the answer does.
static void settle(void) {
    for (int i = 0; i < SIGNALS_MOST && !wire_is_settled(); i++)
        wire_settle();
}

static void finish(void) {
    wire_send_monitor(LOG_TO_LOG, "");
    settle();
    channel_reply("OK");
}

static void wait_for(const char *milliseconds) {
    long time = strtol(milliseconds, NULL, 10);
    struct timespec left = {time / 1000, time % 1000 * 1000000};
    if (time > 0)
        nanosleep(&left, NULL);
}

static bool is_command(const char *command, const char *words, const char **rest) {
    size_t size = strlen(words);
    if (strncmp(command, words, size) != 0 || (command[size] && command[size] != ' '))
        return false;
    *rest = command + size + strspn(command + size, " ");
    return true;
}

static void set_error_limit(uint64_t limit) {
    say("vgdb-error value changed from %lu to %lu\n", debug_error_limit, limit);
    debug_error_limit = limit;
}

static bool set_something(const char *command) {
    const char *rest;
    if (is_command(command, "gdb_output", &rest))
        output = TO_GDB;
    else if (is_command(command, "log_output", &rest))
        output = TO_LOG;
    else if (is_command(command, "mixed_output", &rest))
        output = MIXED;
    else if (is_command(command, "vgdb-error", &rest) && *rest)
        set_error_limit(strtoull(rest, NULL, 10));
    else
        return false;
    return true;
}

static void show_descriptors(void) {
    DIR *entries = opendir("/proc/self/fd");
    struct dirent *entry;
    while (entries && (entry = readdir(entries))) {
        char path[64], to[LINE / 2];
        int number = atoi(entry->d_name);
        snprintf(path, sizeof path, "/proc/self/fd/%d", number);
        ssize_t size = readlink(path, to, sizeof to - 1);
        if (entry->d_name[0] == '.' || size < 0 || number == dirfd(entries) ||
            process_owns_descriptor(number))
            continue;
        to[size] = 0;
        say("Open file descriptor %d: %s\n", number, to);
    }
    if (entries)
        closedir(entries);
}

// False: it is none of the engine's.
static bool core_command(const char *command) {
    const char *rest;
    if (is_command(command, "help", &rest)) {
        say("%s", help);
        if (tool->monitor_help)
            say("%s monitor commands:\n%s", tool->name, tool->monitor_help);
        if (!strcmp(rest, "debug"))
            say("debugging valgrind internals monitor commands: none\n");
    } else if (is_command(command, "v.wait", &rest)) {
        wait_for(rest);
    } else if (is_command(command, "v.kill", &rest)) {
        say("monitor command request to kill this process\n");
        finish();
        syscall(SYS_kill, getpid(), SIGKILL);
    } else if (is_command(command, "v.info open_fds", &rest)) {
        show_descriptors();
    } else if (is_command(command, "v.set", &rest)) {
        return set_something(rest);
    } else {
        return false;
    }
    return true;
}

static bool tool_command(const char *command) {
    static char words[LINE];
    size_t used = 0;
    for (; *command && used + 1 < sizeof words; command++)
        if (*command != ' ' || (used && command[1] && command[1] != ' '))
            words[used++] = *command;
    words[used] = 0;
    return tool->monitor && tool->monitor(words);
}

void monitor_command(const char *command) {
    command += strspn(command, " ");
    if (output == TO_GDB)
        wire_send_monitor(LOG_TO_GDB, "");
    if (!core_command(command) && !tool_command(command))
        wire_send_monitor(TO_SUPERVISOR, command);
    finish();
}
