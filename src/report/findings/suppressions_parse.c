#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "profile/findings/finding.h"
#include "report/findings/suppressions_parts.h"
#include "profile/findings/leaks.h"

enum { MOST_LOCATIONS = 500, MOST_NESTED = 16, MOST_BYTES = 64 << 20 };

// The text being read. Lines come trimmed; empty ones and comments are passed over.
struct reader {
    struct suppressions *suppressions;
    const char *path;
    const char *at, *end;
    unsigned line_number;
    unsigned nesting;
    const char *line; // the current one
    size_t size;
};

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool next_line(struct reader *reader) {
    while (reader->at < reader->end) {
        const char *start = reader->at;
        const char *end = memchr(start, '\n', (size_t)(reader->end - start));
        reader->at = end ? end + 1 : reader->end;
        if (!end)
            end = reader->end;
        reader->line_number++;
        while (start < end && is_space(*start))
            start++;
        while (end > start && is_space(end[-1]))
            end--;
        if (start == end || *start == '#')
            continue;
        reader->line = start;
        reader->size = (size_t)(end - start);
        return true;
    }
    return false;
}

static bool line_is(const struct reader *reader, const char *text) {
    return reader->size == strlen(text) && memcmp(reader->line, text, reader->size) == 0;
}

// What follows the prefix, or NULL.
static const char *line_after(const struct reader *reader, const char *prefix) {
    size_t size = strlen(prefix);
    return reader->size >= size && memcmp(reader->line, prefix, size) == 0 ? reader->line + size
                                                                           : NULL;
}

static char *copy_range(const char *start, const char *end) {
    struct text text = {0};
    text_add(&text, start, (size_t)(end - start));
    return text_take(&text);
}

static char *copy_line(const struct reader *reader) {
    return copy_range(reader->line, reader->line + reader->size);
}

__attribute__((format(printf, 2, 3))) static char *wrong(const struct reader *reader,
                                                         const char *format, ...) {
    struct text text = {0};
    va_list arguments;
    text_format(&text, "in suppressions file \"%s\" near line %u:\n   ", reader->path,
                reader->line_number);
    va_start(arguments, format);
    text_vformat(&text, format, arguments);
    va_end(arguments);
    return text_take(&text);
}

// ---- the parts of an entry ---------------------------------------------------------------------

static bool is_number(const char *text) {
    if (!*text)
        return false;
    while (*text >= '0' && *text <= '9')
        text++;
    return !*text;
}

static bool kind_is_known(const char *kind) {
    static const char *const kinds[] = {
        "Param",    "User",           "CoreMem",      "Cond",         "Jump",    "Free",
        "Overlap",  "Leak",           "Mempool",      "FishyValue",   "BadSize", "ReallocZero",
        "BadAlign", "UnsafeZeroSize", "SizeMismatch", "AlignMismatch"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    return (strncmp(kind, "Addr", 4) == 0 && is_number(kind + 4)) ||
           (strncmp(kind, "Value", 5) == 0 && is_number(kind + 5));
}

static bool thread_kind_is_known(const char *kind) {
    return finding_kind_is_about_threads(finding_kind_of_xml(kind)) ||
           strcmp(kind, "FreeMemLock") == 0 || strcmp(kind, "UnlockBogus") == 0 ||
           strcmp(kind, "Dubious") == 0;
}

static bool core_kind_is_known(const char *kind) {
    return finding_kind_is_core(finding_kind_of_xml(kind));
}

// Old names of kinds.
static void use_present_name(struct entry *entry) {
    static const char *const names[][2] = {{"Value0", "Cond"}, {"BadSize", "UnsafeZeroSize"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(entry->kind, names[i][0]) == 0) {
            free(entry->kind);
            entry->kind = base_copy(names[i][1]);
            return;
        }
    }
}

// "Memcheck,Helgrind:Cond": whether a tool is among them; the kind follows the colon.
static bool is_for(const char *tool, const char *line, const char *colon) {
    size_t size = strlen(tool);
    for (const char *at = line; at < colon;) {
        const char *end = memchr(at, ',', (size_t)(colon - at));
        if (!end)
            end = colon;
        if ((size_t)(end - at) == size && memcmp(at, tool, size) == 0)
            return true;
        at = end + 1;
    }
    return false;
}

static char *read_leak_kinds(const struct reader *reader, const char *list, struct entry *entry) {
    const char *end = reader->line + reader->size;
    entry->leak_kinds = 0;
    for (const char *at = list; at < end;) {
        const char *stop = memchr(at, ',', (size_t)(end - at));
        const char *next = stop ? stop + 1 : end;
        if (!stop)
            stop = end;
        while (at < stop && is_space(*at))
            at++;
        while (stop > at && is_space(stop[-1]))
            stop--;
        char *word = copy_range(at, stop);
        bool known = strcmp(word, "all") == 0 || strcmp(word, "none") == 0;
        if (strcmp(word, "all") == 0)
            entry->leak_kinds = ALL_LEAK_KINDS;
        for (unsigned i = 0; i < LEAK_KINDS; i++) {
            if (strcmp(word, leak_kind_name(i)) == 0) {
                entry->leak_kinds |= 1u << i;
                known = true;
            }
        }
        free(word);
        if (!known)
            return wrong(reader, "match-leak-kinds: takes definite, indirect, possible, reachable, "
                                 "all or none");
        at = next;
    }
    return NULL;
}

static void add_location(struct entry *entry, struct location location) {
    *vector_push(entry->locations, entry->location_count) = location;
}

// FILE or FILE:LINE.
static struct location source_location(char *pattern) {
    struct location location = {.kind = LOCATION_SOURCE, .pattern = pattern};
    char *colon = strrchr(pattern, ':');
    if (colon && is_number(colon + 1)) {
        *colon = 0;
        location.line = (uint32_t)strtoul(colon + 1, NULL, 10);
    }
    return location;
}

static char *read_location(const struct reader *reader, struct entry *entry) {
    static const struct {
        const char *prefix;
        enum location_kind kind;
    } forms[] = {{"fun:", LOCATION_FUNCTION}, {"obj:", LOCATION_OBJECT}, {"src:", LOCATION_SOURCE}};
    if (entry->location_count == MOST_LOCATIONS)
        return wrong(reader, "more than %d lines of a stack", MOST_LOCATIONS);
    if (line_is(reader, "...")) {
        add_location(entry, (struct location){.kind = LOCATION_ANY});
        return NULL;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const char *pattern = line_after(reader, forms[i].prefix);
        if (!pattern)
            continue;
        char *copy = copy_range(pattern, reader->line + reader->size);
        add_location(entry, forms[i].kind == LOCATION_SOURCE
                                ? source_location(copy)
                                : (struct location){.kind = forms[i].kind, .pattern = copy});
        return NULL;
    }
    return wrong(reader, "a line of a stack is \"...\" or begins with \"fun:\", \"obj:\" or "
                         "\"src:\"");
}

static char *unfinished(const struct reader *reader, const char *expected) {
    return wrong(reader, "the file ends where %s was expected", expected);
}

static char *skip_entry(struct reader *reader) {
    while (next_line(reader))
        if (line_is(reader, "}"))
            return NULL;
    return unfinished(reader, "\"}\"");
}

// The lines between the kind and the stack; the reader is then at the first of the stack.
static char *read_extra(struct reader *reader, struct entry *entry) {
    bool has_parameter =
        strcmp(entry->kind, "Param") == 0 || strcmp(entry->kind, "FishyValue") == 0;
    if (has_parameter) {
        if (line_is(reader, "}") || line_is(reader, "...") || line_after(reader, "fun:") ||
            line_after(reader, "obj:") || line_after(reader, "src:"))
            return wrong(reader, "%s needs a line that names the parameter", entry->kind);
        entry->parameter = copy_line(reader);
    } else if (strcmp(entry->kind, "Leak") == 0 && line_after(reader, "match-leak-kinds:")) {
        char *error = read_leak_kinds(reader, line_after(reader, "match-leak-kinds:"), entry);
        if (error)
            return error;
    } else {
        return NULL;
    }
    return next_line(reader) ? NULL : unfinished(reader, "a stack");
}

static char *read_locations(struct reader *reader, struct entry *entry) {
    for (; !line_is(reader, "}");) {
        char *error = read_location(reader, entry);
        if (error)
            return error;
        if (!next_line(reader))
            return unfinished(reader, "\"}\"");
    }
    for (size_t i = 0; i < entry->location_count; i++)
        if (entry->locations[i].kind != LOCATION_ANY)
            return NULL;
    return wrong(reader, "a suppression needs a line of a stack that is not \"...\"");
}

// After "{" and the name, at the line of tool and kind. *unwanted: it is for another tool.
static char *read_body(struct reader *reader, struct entry *entry, bool *unwanted) {
    const char *colon = memchr(reader->line, ':', reader->size);
    if (!colon)
        return wrong(reader, "expected Tool:Kind, as in Memcheck:Cond");
    bool is_core = is_for("CoreError", reader->line, colon);
    const char *tool = reader->suppressions->tool;
    bool is_thread_tool = strcmp(tool, "Helgrind") == 0;
    *unwanted = !is_core && !is_for(tool, reader->line, colon);
    if (*unwanted)
        return skip_entry(reader);
    entry->kind = copy_range(colon + 1, reader->line + reader->size);
    if (is_core          ? !core_kind_is_known(entry->kind)
        : is_thread_tool ? !thread_kind_is_known(entry->kind)
                         : !kind_is_known(entry->kind))
        return wrong(reader, "unknown kind of error for %s: \"%s\"", is_core ? "CoreError" : tool,
                     entry->kind);
    use_present_name(entry);
    entry->leak_kinds = ALL_LEAK_KINDS;
    if (!next_line(reader))
        return unfinished(reader, "a stack");
    char *error = read_extra(reader, entry);
    return error ? error : read_locations(reader, entry);
}

static char *read_entry(struct reader *reader) {
    if (!next_line(reader))
        return unfinished(reader, "a name");
    struct entry *entry = base_allocate(sizeof *entry);
    entry->shown.name = copy_line(reader);
    entry->shown.file = base_copy(reader->path);
    entry->shown.line = reader->line_number;
    bool unwanted = false;
    char *error =
        next_line(reader) ? read_body(reader, entry, &unwanted) : unfinished(reader, "Tool:Kind");
    if (error || unwanted) {
        suppressions_entry_free(entry);
        return error;
    }
    entry->next = reader->suppressions->first;
    reader->suppressions->first = entry;
    return NULL;
}

// ---- files -------------------------------------------------------------------------------------

static char *read_file(struct suppressions *suppressions, const char *path, unsigned nesting);

static char *include(struct reader *reader, const char *name) {
    while (name < reader->line + reader->size && is_space(*name))
        name++;
    char *file = copy_range(name, reader->line + reader->size);
    const char *slash = strrchr(reader->path, '/');
    if (file[0] != '/' && slash) {
        struct text path = {0};
        text_format(&path, "%.*s/%s", (int)(slash - reader->path), reader->path, file);
        free(file);
        file = text_take(&path);
    }
    char *error = reader->nesting + 1 == MOST_NESTED
                      ? wrong(reader, "files are included more than %d deep", MOST_NESTED)
                      : read_file(reader->suppressions, file, reader->nesting + 1);
    free(file);
    return error;
}

static char *parse(struct suppressions *suppressions, const char *text, size_t size,
                   const char *path, unsigned nesting) {
    struct reader reader = {.suppressions = suppressions,
                            .path = path,
                            .at = text,
                            .end = text + size,
                            .nesting = nesting};
    char *error = NULL;
    while (!error && next_line(&reader)) {
        const char *file = line_after(&reader, "include ");
        if (line_is(&reader, "{"))
            error = read_entry(&reader);
        else if (file)
            error = include(&reader, file);
        else
            error = wrong(&reader, "expected \"{\" or a comment");
    }
    return error;
}

char *suppressions_parse(struct suppressions *suppressions, const char *text, size_t size,
                         const char *path) {
    return parse(suppressions, text, size, path, 0);
}

static char *unreadable(const char *path, const char *reason) {
    struct text text = {0};
    text_format(&text, "can't open suppressions file \"%s\": %s", path, reason);
    return text_take(&text);
}

static char *read_file(struct suppressions *suppressions, const char *path, unsigned nesting) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return unreadable(path, strerror(errno));
    struct text text = {0};
    char buffer[65536];
    ssize_t got;
    while ((got = read(fd, buffer, sizeof buffer)) > 0 && text.size < MOST_BYTES)
        text_add(&text, buffer, (size_t)got);
    int error = got < 0 ? errno : got > 0 ? EFBIG : 0;
    close(fd);
    char *message = error ? unreadable(path, strerror(error))
                          : parse(suppressions, text.bytes, text.size, path, nesting);
    text_free(&text);
    return message;
}

char *suppressions_read(struct suppressions *suppressions, const char *path) {
    return read_file(suppressions, path, 0);
}
