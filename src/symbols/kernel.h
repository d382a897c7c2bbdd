/*
 * kernel: names of the kernel's own functions, from /proc/kallsyms.
 *
 * The kernel hides its addresses where kernel.kptr_restrict and the capabilities of this process
 * say so; then there are no names. The table is read once, at the first look-up: it has a hundred
 * thousand lines and takes about 50 ms. Supervisor only; part of symbols.
 */
#ifndef QUERN_SYMBOLS_KERNEL_H
#define QUERN_SYMBOLS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_function {
    uint64_t start;
    uint32_t name, module; /* places in the text; module 0: the kernel itself */
    bool is_global;
};

/* Zero-initialised has not been read. Invariant: functions are sorted by start, without equals. */
struct kernel {
    char *text; /* as in kallsyms, with NULs behind names */
    struct kernel_function *functions;
    size_t count;
    bool is_read;
};

/* Takes the text of kallsyms, from malloc and ended by a NUL. */
void kernel_read(struct kernel *kernel, char *text, size_t size);
void kernel_free(struct kernel *kernel);

/* The function at address; NULL if it is not known. *module is NULL for the kernel itself. Reads
 * /proc/kallsyms if nothing has been read yet. */
const struct kernel_function *kernel_find(struct kernel *kernel, uint64_t address,
                                          const char **name, const char **module);

#endif
