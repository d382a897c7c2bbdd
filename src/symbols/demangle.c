#include "symbols/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/redirection.h"

/*
 * libiberty refuses C++ names of more than 1024 bytes unless told not to limit itself; templates
 * make longer ones every day. Its recursion is at most as deep as the name is long, so names up to
 * this length fit on any sane stack.
 */
#define UNLIMITED_LENGTH 8192

struct output {
    char *buffer;
    size_t size, used;
    jmp_buf full;
};

/* Back references make the output grow exponentially with the name: stop where the room ends. */
static void append(const char *text, size_t length, void *opaque) {
    struct output *output = opaque;
    if (length >= output->size - output->used)
        longjmp(output->full, 1);
    memcpy(output->buffer + output->used, text, length);
    output->used += length;
}

static bool demangle_rust_or_cxx(const char *linkage, struct output *output) {
    int options = DMGL_ANSI | DMGL_PARAMS;
    /* Legacy Rust names look like C++ ones, so Rust is tried first. */
    if (rust_demangle_callback(linkage, options, append, output))
        return true;
    output->used = 0;
    if (strncmp(linkage, "_Z", 2) && strncmp(linkage, "_GLOBAL_", 8))
        return false;
    if (strnlen(linkage, UNLIMITED_LENGTH) < UNLIMITED_LENGTH)
        options |= DMGL_NO_RECURSE_LIMIT;
    return cplus_demangle_v3_callback(linkage, options, append, output);
}

/* longjmp comes back here: nothing but the output may change in between. */
static bool demangle_within(const char *linkage, const char *version, struct output *output) {
    if (setjmp(output->full) || !demangle_rust_or_cxx(linkage, output))
        return false;
    append(version, strlen(version), output);
    output->buffer[output->used] = 0;
    return true;
}

bool demangle(const char *linkage, char *buffer, size_t size) {
    struct redirection redirection;
    if (!size || linkage[0] != '_')
        return false;
    if (redirection_parse(linkage, &redirection) && strlen(redirection.function) < size) {
        if (!demangle(redirection.function, buffer, size))
            strcpy(buffer, redirection.function);
        return true;
    }
    struct output output = {.buffer = buffer, .size = size};
    /* The linker writes versions behind the name ("_ZNSs4swapERSs@@GLIBCXX_3.4"). */
    size_t bare_length = strcspn(linkage, "@");
    if (!linkage[bare_length])
        return demangle_within(linkage, "", &output);
    char *bare = strndup(linkage, bare_length);
    bool done = bare && demangle_within(bare, linkage + bare_length, &output);
    free(bare);
    return done;
}
