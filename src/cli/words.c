#include "cli/words.h"
#include "config.h"

#include <limits.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool words_value(char ***word, const char *name, const char **value) {
    size_t size = strlen(name);
    if (strncmp(**word, name, size) != 0)
        return false;
    const char *rest = **word + size;
    if (*rest == '=') {
        *value = rest + 1;
        return true;
    }
    if (*rest)
        return false;
    *value = (*word)[1];
    if (*value)
        (*word)++;
    return true;
}

bool words_ask_help(char *const *words) {
    for (; *words; words++)
        if (strcmp(*words, "-h") == 0 || strcmp(*words, "--help") == 0)
            return true;
    return false;
}

int words_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("quern: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return WORDS_FAILED;
}

int words_refuse(const char *what, const char *value, void (*list)(struct text *text)) {
    struct text known = {0};
    list(&known);
    if (value)
        words_fail("unknown %s '%s'; there are %s", what, value, known.bytes);
    else
        words_fail("no %s given; there are %s", what, known.bytes);
    text_free(&known);
    return WORDS_FAILED;
}

int words_number(const char *name, const char *value, double least, double most, double *number) {
    char *end = NULL;
    double got = value ? strtod(value, &end) : 0;
    if (!value || end == value || *end || !(got >= least && got <= most))
        return words_fail("%s is a number from %.0f to %.0f", name, least, most);
    *number = got;
    return WORDS_DONE;
}

int words_whole(const char *name, const char *value, size_t least, size_t most, size_t *number) {
    char *end = NULL;
    unsigned long got = value ? strtoul(value, &end, 10) : 0;
    if (!value || *value < '0' || *value > '9' || *end || got < least || got > most)
        return words_fail("%s is a number from %zu to %zu", name, least, most);
    *number = got;
    return WORDS_DONE;
}

void words_list_weights(struct text *text) {
    for (size_t i = 0; i < heap_weight_count; i++)
        text_format(text, "%s%s", i ? "|" : "", heap_weights[i].name);
}

int words_weight(const char *value, const struct heap_weight **weight) {
    for (size_t i = 0; value && i < heap_weight_count; i++) {
        if (strcmp(heap_weights[i].name, value) == 0) {
            *weight = &heap_weights[i];
            return WORDS_DONE;
        }
    }
    return words_refuse("weight", value, words_list_weights);
}

size_t words_start(const char *path, char *start, size_t most) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, start, most) : -1;
    if (fd >= 0)
        close(fd);
    return size > 0 ? (size_t)size : 0;
}

int words_open(const char *path, char *start, size_t *size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : pread(fd, start, *size, 0);
    if (got >= 0) {
        *size = (size_t)got;
        return fd;
    }
    words_fail("cannot read '%s': %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

// ---- filters ----

const char words_filter_help[] =
    "  --from=SECONDS       only blocks allocated from then on\n"
    "  --to=SECONDS         nothing that happened then or later\n"
    "  --size=LEAST-MOST    only blocks of so many bytes when they were allocated; either may be\n"
    "                       missing\n"
    "  --lifetime=LEAST-MOST  only blocks that lived for so many seconds\n"
    "  --function=PATTERN   only stacks with a function of that name; * and ? stand for anything,\n"
    "                       several are separated by commas\n"
    "  --library=PATTERN    the same for program and libraries\n";

// A number of seconds in nanoseconds.
static bool parse_seconds(const char *text, const char *end, uint64_t *value) {
    char *stop;
    double seconds = strtod(text, &stop);
    if (stop != end || stop == text || !(seconds >= 0 && seconds < 1e9))
        return false;
    *value = (uint64_t)(seconds * 1e9 + 0.5);
    return true;
}

static bool parse_bytes(const char *text, const char *end, uint64_t *value) {
    char *stop;
    *value = strtoull(text, &stop, 10);
    return stop == end && *text >= '0' && *text <= '9' && *value <= HEAP_SIZE_MAX;
}

// LEAST-MOST: the second is in the range, and the first value behind it is kept.
static bool parse_range(const char *text,
                        bool (*parse)(const char *text, const char *end, uint64_t *value),
                        uint64_t *from, uint64_t *to) {
    const char *dash = text ? strchr(text, '-') : NULL;
    if (!dash || !(dash[1] || dash > text))
        return false;
    if (dash > text && !parse(text, dash, from))
        return false;
    if (dash[1] && !parse(dash + 1, dash + strlen(dash), to))
        return false;
    *to += dash[1] != 0;
    return *from < *to;
}

bool words_filter(char ***word, struct heap_filter *filter, int *status) {
    const char *name = **word, *value;
    bool fine = true;
    if (words_value(word, "--from", &value))
        fine = value && parse_seconds(value, value + strlen(value), &filter->from);
    else if (words_value(word, "--to", &value))
        fine = value && parse_seconds(value, value + strlen(value), &filter->to);
    else if (words_value(word, "--size", &value))
        fine = parse_range(value, parse_bytes, &filter->size_from, &filter->size_to);
    else if (words_value(word, "--lifetime", &value))
        fine = parse_range(value, parse_seconds, &filter->life_from, &filter->life_to);
    else if (words_value(word, "--function", &value))
        fine = (filter->function = value) && *value;
    else if (words_value(word, "--library", &value))
        fine = (filter->library = value) && *value;
    else
        return false;
    *status = fine ? WORDS_DONE
                   : words_fail("'%s' is no value for %.*s; --help says what is",
                                value ? value : "", (int)strcspn(name, "="), name);
    return true;
}

// ---- recordings ----

int words_recording(const char *path, struct heap_file *file, const struct heap_filter *filter,
                    const struct heap_sink *sinks, size_t count) {
    char start[8];
    size_t size = sizeof start;
    int fd = words_open(path, start, &size);
    if (fd < 0)
        return WORDS_FAILED;
    char *problem = heap_filter_read(fd, file, filter, sinks, count);
    close(fd);
    if (problem) {
        words_fail("cannot read '%s': %s", path, problem);
        free(problem);
        heap_file_free(file);
        return WORDS_FAILED;
    }
    char *notice = heap_file_notice(file);
    if (!notice)
        return WORDS_DONE;
    fprintf(stderr, "quern: '%s': %s\n", path, notice);
    free(notice);
    return WORDS_PARTIAL;
}

static bool is_same_file(const char *left, const char *right) {
    struct stat a, b;
    return stat(left, &a) == 0 && stat(right, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

FILE *words_output(const char *path, const char *input) {
    if (!path || strcmp(path, "-") == 0)
        return stdout;
    if (is_same_file(path, input)) {
        words_fail("cannot write '%s': it is the file to be read", path);
        return NULL;
    }
    FILE *out = fopen(path, "we");
    if (!out)
        words_fail("cannot write '%s': %s", path, strerror(errno));
    return out;
}

bool words_close(FILE *out, const char *path) {
    bool failed = ferror(out);
    int error = errno;
    bool is_stdout = out == stdout;
    if (is_stdout ? fflush(out) != 0 : fclose(out) != 0) {
        failed = true;
        error = errno;
    }
    if (failed)
        words_fail("cannot write %s%s%s: %s", is_stdout ? "the output" : "'", is_stdout ? "" : path,
                   is_stdout ? "" : "'", strerror(error));
    return !failed;
}

// Engine, recorder and suppressions lie beside quern in a build folder, or in libexec below the
// same prefix.
char *words_part(const char *name, int mode) {
    char self[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size <= 0)
        return NULL;
    self[size] = 0;
    *strrchr(self, '/') = 0;
    struct text path = {0};
    static const char *const places[] = {".", QUERN_LIBEXEC_FROM_BIN};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        text_clear(&path);
        text_format(&path, "%s/%s/%s", self, places[i], name);
        char *real = realpath(path.bytes, NULL);
        if (real && access(real, mode) == 0) {
            text_free(&path);
            return real;
        }
        free(real);
    }
    text_clear(&path);
    text_format(&path, "%s/%s", QUERN_LIBEXEC, name);
    if (access(path.bytes, mode) == 0)
        return text_take(&path);
    text_free(&path);
    return NULL;
}
