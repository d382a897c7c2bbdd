// Which code is atomic, by debug information.
//
// A load or store of an atomic variable is an ordinary instruction. But it comes from a function of
// the C++ or Rust library, which the compiler has inlined and recorded; or, in C, from a source
// line that says so. What has no line is not known.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/races/supervisor/races.h"

enum { FRAMES = 64, LINE_MOST = 4096, SOURCE_MOST = 8 << 20 };

static bool contains(const char *text, const char *word) {
    return text && strcasestr(text, word);
}

// Headers of atomics have it in their names; a program's own file may be called anything.
static bool is_atomic_file(const char *file) {
    const char *slash = file ? strrchr(file, '/') : NULL;
    const char *name = slash ? slash + 1 : file;
    if (!name || !contains(name, "atomic"))
        return false;
    const char *dot = strrchr(name, '.');
    return !dot || strcmp(dot, ".h") == 0 || strcmp(dot, ".hpp") == 0 ||
           strcmp(name, "atomic.rs") == 0;
}

// The libraries' own; of functions that are inlined, also those that are called so themselves, but
// not what is declared within another that is.
static bool is_atomic_function(const struct symbol_frame *frame) {
    static const char *const words[] = {"St6atomic",         "St11atomic_flag", "St13__atomic_",
                                        "St12__atomic_",     "__atomic_",       "4core4sync6atomic",
                                        "core::sync::atomic"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if ((frame->linkage && strstr(frame->linkage, words[i])) ||
            (frame->name && strstr(frame->name, words[i])))
            return true;
    return frame->inlined && contains(frame->name, "atomic") && !strpbrk(frame->name, ":({");
}

// Of the C library, only functions that copy memory are looked at (target/copies.c).
static bool is_c_library(const char *object) {
    const char *slash = object ? strrchr(object, '/') : NULL;
    return slash && (strncmp(slash, "/libc.so", 8) == 0 || strncmp(slash, "/libc-", 6) == 0);
}

// Code of the C++ library that comes without lines, but is known to be of containers.
static bool is_container_function(const struct symbol_frame *frame) {
    static const char *const words[] = {"_Rb_tree_", "_List_node_base", "basic_string"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (contains(frame->object, "libstdc++") && frame->name && strstr(frame->name, words[i]))
            return true;
    return false;
}

// ---- source lines ------------------------------------------------------------------------------

static bool says_atomic(const char *line) {
    static const char *const words[] = {"__sync_", "READ_ONCE", "WRITE_ONCE", "ACCESS_ONCE",
                                        "smp_"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(line, words[i]))
            return true;
    return contains(line, "atomic");
}

static bool is_word(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

// atomic_int and its kin, with the name of a variable behind it.
static bool is_atomic_type(const char *at) {
    if (strncmp(at, "atomic_", strlen("atomic_")) != 0)
        return false;
    while (is_word(*at))
        at++;
    size_t space = strspn(at, " \t");
    at += space + strspn(at + space, "* \t");
    return space && is_word(*at);
}

// Whether one atomic type stands before the word, with nothing between them that ends a
// declaration.
static bool is_declared(const char *start, const char *found) {
    bool has_type = false;
    for (const char *at = start; at < found; at++) {
        bool begins = at == start || !is_word(at[-1]);
        if (begins && strncmp(at, "_Atomic", strlen("_Atomic")) == 0) {
            has_type = true;
            at += strlen("_Atomic") + strspn(at + strlen("_Atomic"), " (") - 1;
        } else if (begins && is_atomic_type(at)) {
            has_type = true;
        } else if (strchr(";{}(\"'", *at)) {
            has_type = false;
        }
    }
    return has_type;
}

// Whether the source line around a word declares it as atomic, or defines it as a macro that is.
static bool is_declared_atomic(const char *source, const char *found) {
    const char *start = found;
    char text[512];
    while (start > source && start[-1] != '\n')
        start--;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(start, "\n"), start);
    const char *macro = text + strspn(text, " \t");
    if (*macro == '#' && strstr(macro, "define"))
        return says_atomic(text) && (size_t)(found - start) < strcspn(text, "(");
    return is_declared(start, found);
}

static bool has_atomic_word(const char *source, const char *word, size_t size) {
    for (const char *found = strstr(source, word); found; found = strstr(found + size, word))
        if ((found == source || !is_word(found[-1])) && !is_word(found[size]) &&
            is_declared_atomic(source, found))
            return true;
    return false;
}

// Whether the source declares a word of the line as atomic.
static bool declares_atomic(const char *source, const char *line) {
    size_t size;
    for (const char *at = line; *at; at += size ? size : 1) {
        char word[128];
        for (size = 0; is_word(at[size]);)
            size++;
        snprintf(word, sizeof word, "%.*s", (int)size, at);
        if (size && size < sizeof word && !isdigit((unsigned char)*at) &&
            has_atomic_word(source, word, size))
            return true;
    }
    return false;
}

static char *read_source(const struct symbol_frame *frame) {
    struct text path = {0};
    if (frame->directory)
        text_format(&path, "%s/", frame->directory);
    text_string(&path, frame->file);
    FILE *file = fopen(path.bytes, "re");
    text_free(&path);
    if (!file)
        return NULL;
    char *source = base_allocate(SOURCE_MOST + 1);
    size_t size = fread(source, 1, SOURCE_MOST, file);
    source[size] = 0;
    fclose(file);
    return source;
}

static bool is_atomic_line(const struct symbol_frame *frame) {
    char *source = frame->file && frame->line ? read_source(frame) : NULL;
    bool is_atomic = false;
    if (!source)
        return false;
    const char *at = source;
    for (uint32_t line = 1; line < frame->line && at; line++) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    if (at) {
        char line[LINE_MOST];
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        is_atomic = says_atomic(line) || declares_atomic(source, line);
    }
    free(source);
    return is_atomic;
}

// ---- all together ------------------------------------------------------------------------------

enum atomic_code atomics_look(struct symbols *symbols, int pid, uint64_t pc) {
    struct symbol_frame frames[FRAMES];
    size_t count = symbols_resolve(symbols, pid, pc, false, frames, FRAMES);
    if (!count)
        return CODE_IS_UNKNOWN;
    for (size_t i = 0; i < count; i++)
        if (is_atomic_function(&frames[i]) || is_atomic_file(frames[i].file) ||
            contains(frames[i].object, "libatomic"))
            return CODE_IS_ATOMIC;
    if (!frames[0].line)
        return is_container_function(&frames[0]) || is_c_library(frames[0].object)
                   ? CODE_IS_PLAIN
                   : CODE_IS_UNKNOWN;
    return is_atomic_line(&frames[0]) ? CODE_IS_ATOMIC : CODE_IS_PLAIN;
}
