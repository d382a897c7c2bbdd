// What a tool sends to the supervisor, and its options.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "engine/debug/debug.h"
#include "engine/log.h"
#include "engine/process.h"
#include "engine/sys/sys.h"
#include "engine/tool.h"
#include "wire/wire_target.h"

void tool_give_file(int fd) {
    wire_send_file(WIRE_FILE, fd);
}

void tool_give_heap(int fd, uint64_t size) {
    wire_send_heap(fd, size);
}

void tool_give_ledger(int fd) {
    wire_send_file(WIRE_LEDGER, fd);
}

void tool_send(unsigned type, const void *first, size_t first_size, const void *second,
               size_t second_size) {
    wire_send_parts(type, first, first_size, second, second_size);
}

void tool_ask_report(bool report, const char *why) {
    wire_send_dump(report ? 0 : 1, why);
}

void tool_print(const char *text, bool with_stack) {
    uint64_t pcs[500];
    size_t count = 0;
    if (with_stack)
        count = tool_stack(pcs, sizeof pcs / sizeof *pcs);
    // A thread has its program's name until it gets one of its own.
    char name[WIRE_THREAD_NAME] = "";
    const char *program = strrchr(process.program, '/');
    prctl(PR_GET_NAME, name);
    if (program && strncmp(name, program + 1, WIRE_THREAD_NAME - 1) == 0)
        *name = 0;
    wire_send_print(tool_thread_number(), name, text, pcs, count);
    order_raised();
}

const char *tool_option(const char *name) {
    return wire_option(name);
}

const char *tool_option_next(const char *name, const char *previous) {
    return wire_option_next(name, previous);
}

void tool_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    log_notice_list(0, format, arguments);
    va_end(arguments);
    order_raised();
}

void tool_error_shown(uint64_t shown) {
    debug_error(shown);
}

bool tool_waits_at_errors(void) {
    return debug_waits_at_errors();
}

void tool_answer(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    debug_answer(format, arguments);
    va_end(arguments);
}

void tool_debug(const char *format, ...) {
    va_list arguments;
    char line[512];
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    log_debug("%s", line);
}

void tool_give_up(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    log_notice_list(-1, format, arguments);
    va_end(arguments);
    _exit(1);
}
