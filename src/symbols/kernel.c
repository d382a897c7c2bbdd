#include "symbols/kernel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/search.h"
#include "base/vector.h"

enum { READ_BYTES = 1 << 20 };
#define TEXT_BYTES_MAX     ((size_t)256 << 20)
#define FUNCTION_BYTES_MAX ((uint64_t)1 << 20)

static bool is_code(char type) {
    return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* A line "ADDRESS TYPE NAME" or "ADDRESS TYPE NAME\t[MODULE]". */
static void read_line(struct kernel *kernel, char *line) {
    char *end, *rest;
    uint64_t start = strtoull(line, &end, 16);
    if (!start || end == line || end[0] != ' ' || !is_code(end[1]) || end[2] != ' ' || !end[3])
        return;
    char *name = end + 3;
    struct kernel_function function = {
        .start = start, .name = (uint32_t)(name - kernel->text), .is_global = end[1] == 'T'};
    rest = strchr(name, '\t');
    if (rest) {
        *rest = 0;
        function.module = (uint32_t)(rest + 1 - kernel->text);
    }
    if (*name)
        *vector_push(kernel->functions, kernel->count) = function;
}

/* Of several names at one address, a global one comes first, then the one that comes first in the
 * table. */
static int compare(const void *left, const void *right) {
    const struct kernel_function *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    if (a->is_global != b->is_global)
        return a->is_global ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

void kernel_read(struct kernel *kernel, char *text, size_t size) {
    kernel->text = text;
    kernel->is_read = true;
    char *end = text + size, *line_end;
    for (char *line = text; (line_end = memchr(line, '\n', (size_t)(end - line)));
         line = line_end + 1) {
        *line_end = 0;
        read_line(kernel, line);
    }
    if (!kernel->count)
        return;
    qsort(kernel->functions, kernel->count, sizeof *kernel->functions, compare);
    size_t kept = 1;
    for (size_t i = 1; i < kernel->count; i++)
        if (kernel->functions[i].start != kernel->functions[kept - 1].start)
            kernel->functions[kept++] = kernel->functions[i];
    kernel->count = kept;
}

static void read_kallsyms(struct kernel *kernel) {
    int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
    char *text = NULL;
    size_t size = 0;
    ssize_t got = 0;
    do {
        size += (size_t)got;
        text = base_reallocate(text, size + READ_BYTES + 1);
        got = fd < 0 || size > TEXT_BYTES_MAX ? 0 : read(fd, text + size, READ_BYTES);
    } while (got > 0);
    if (fd >= 0)
        close(fd);
    text[size] = 0;
    kernel_read(kernel, text, size);
}

void kernel_free(struct kernel *kernel) {
    free(kernel->text);
    free(kernel->functions);
    *kernel = (struct kernel){0};
}

const struct kernel_function *kernel_find(struct kernel *kernel, uint64_t address,
                                          const char **name, const char **module) {
    if (!kernel->is_read)
        read_kallsyms(kernel);
    const struct kernel_function *functions = kernel->functions;
    size_t behind = search_first(at, 0, kernel->count, functions[at].start > address);
    const struct kernel_function *function = behind ? &functions[behind - 1] : NULL;
    if (!function || address - function->start > FUNCTION_BYTES_MAX)
        return NULL;
    *name = kernel->text + function->name;
    *module = function->module ? kernel->text + function->module : NULL;
    return function;
}
