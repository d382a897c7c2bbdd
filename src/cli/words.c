#include "cli/words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options/check.h"
#include "config.h"
#include "report/shared/own.h"

int words_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("quern: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return WORDS_FAILED;
}

int words_invalid(const char *name, const char *value, const char *advice) {
    char *message = option_invalid(name, value, advice);
    int status = words_fail("%s", message);
    free(message);
    return status;
}

int words_weight(const char *value, const struct heap_weight **weight) {
    struct text advice = {0};
    text_string(&advice, "choose one of ");
    for (size_t i = 0; i < heap_weight_count; i++) {
        text_format(&advice, "%s%s", i ? ", " : "", heap_weights[i].name);
        if (strcmp(heap_weights[i].name, value) == 0)
            *weight = &heap_weights[i];
    }
    bool found = *weight && strcmp((*weight)->name, value) == 0;
    int status = found ? WORDS_DONE : words_invalid("--by", value, advice.bytes);
    text_free(&advice);
    return status;
}

bool words_offer_weights(size_t index, struct option_choice *choice) {
    if (index >= heap_weight_count)
        return false;
    *choice =
        (struct option_choice){.name = heap_weights[index].name, .help = heap_weights[index].help};
    return true;
}

void words_choose_own(const struct arguments *arguments) {
    own_choose(argument_text(arguments, "mine"));
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

// Engine, recorder and suppressions are beside quern in a build folder, or in libexec below the
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
