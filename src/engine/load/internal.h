// What the files of the loader share. Only they include it.
//
// Functions return 0 or a negative errno, the one that execve would fail with; load_fail notes the
// reason in words.
#ifndef QUERN_ENGINE_LOAD_INTERNAL_H
#define QUERN_ENGINE_LOAD_INTERNAL_H

#include "engine/load/load.h"
#include "engine/space/place.h"

// Notes what went wrong with which file and returns the status.
int load_fail(struct load_result *result, enum load_fault fault, int status, const char *culprit,
              const char *message);

static inline uintptr_t page_floor(uintptr_t address) {
    return address & ~(SPACE_PAGE - 1);
}

static inline uintptr_t page_ceiling(uintptr_t address) {
    return page_floor(address + SPACE_PAGE - 1);
}

// ---- script.c

// Opens a file for execution with the checks that the kernel makes: its descriptor or a status.
int load_open(const char *path, struct load_result *result);

// A program as it is really to be run, after the scripts are resolved.
struct load_plan {
    int fd;      // of the ELF file
    char **argv; // malloc'ed, as is each of the first `made` strings
    size_t argc;
    size_t made;
    char path[PATH_MAX]; // of the ELF file, not resolved
};

int load_plan_make(struct load_plan *plan, const char *path, char *const *argv,
                   struct load_result *result);
void load_plan_free(struct load_plan *plan);

// ---- module.c

// Maps the ELF file. The name of its interpreter goes to `interpreter`, empty if it has none.
int load_module_map(struct space *space, struct load_module *module, int fd, const char *path,
                    char interpreter[PATH_MAX], enum place place, struct load_result *result);
void load_module_unmap(struct space *space, struct load_module *module);

// ---- stack.c

int load_stack_make(const struct load_request *request, char *const *argv, size_t argc,
                    struct load_result *result);

#endif
