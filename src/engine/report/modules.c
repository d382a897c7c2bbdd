#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/hooks/hooks.h"
#include "engine/stack/stack.h"
#include "engine/memory/maps.h"
#include "engine/report/modules.h"
#include "engine/rlimits.h"
#include "wire/wire_target.h"

void report_module_path(uint64_t start, uint64_t end, uint64_t offset, uint64_t prot,
                        const char *path) {
    struct mapped_code code = {.start = start, .end = end, .offset = offset, .path = path};
    rlimits_lift(); // both read the file
    functions_of_module(start, end, offset, path);
    stack_module_mapped(&code);
    rlimits_restore();
    wire_send_module_map(start, end, offset, prot, path);
}

void report_module(uint64_t start, uint64_t end, uint64_t offset, uint64_t prot, int fd) {
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0)
        return;
    path[length] = 0;
    report_module_path(start, end, offset, prot, path);
}

void report_module_gone(uint64_t start, uint64_t end) {
    functions_gone(start, end);
    stack_module_gone(start, end);
    wire_send_module_unmap(start, end);
}

static void report_code(const struct mapped_code *code, void *unused) {
    report_module_path(code->start, code->end, code->offset, PROT_READ | PROT_EXEC, code->path);
}

void report_modules_in(uint64_t start, uint64_t end) {
    maps_for_each_code(start, end, report_code, NULL);
}
