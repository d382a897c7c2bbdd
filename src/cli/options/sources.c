#include "cli/options/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"

// The limit guards against a file of another kind.
#define FILE_MAX (1 << 20)

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f' || c == 0;
}

void sources_split(struct source_words *words, const char *text, size_t size,
                   enum option_source source, const char *origin) {
    size_t i = 0;
    while (true) {
        while (i < size && is_space(text[i]))
            i++;
        if (i == size)
            return;
        struct text word = {0};
        char quote = 0;
        for (; i < size && (quote || !is_space(text[i])); i++) {
            if (text[i] == 0)
                break;
            if (quote ? text[i] == quote : text[i] == '\'' || text[i] == '"')
                quote = quote ? 0 : text[i];
            else
                text_char(&word, text[i]);
        }
        *vector_push(words->words, words->count) =
            (struct source_word){text_take(&word), source, origin};
    }
}

// Opens an rc file if nobody else can have written it; -1 if it is missing or not safe.
static int open_safe(const char *path, const char *origin) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            fprintf(stderr, "quern: %s is ignored: %s\n", origin, strerror(errno));
        return -1;
    }
    struct stat info;
    const char *why = NULL;
    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        why = "it is not a regular file";
    else if (info.st_uid != geteuid())
        why = "it belongs to another user";
    else if (info.st_mode & S_IWOTH)
        why = "everybody may write to it; chmod o-w fixes that";
    else if (info.st_size > FILE_MAX)
        why = "it is too large";
    if (!why)
        return fd;
    fprintf(stderr, "quern: %s is ignored: %s\n", origin, why);
    close(fd);
    return -1;
}

static void read_file(struct source_words *words, const char *path, enum option_source source,
                      const char *origin) {
    int fd = open_safe(path, origin);
    if (fd < 0)
        return;
    struct text text = {0};
    char buffer[4096];
    ssize_t size;
    while ((size = read(fd, buffer, sizeof buffer)) > 0 && text.size <= FILE_MAX)
        text_add(&text, buffer, (size_t)size);
    close(fd);
    sources_split(words, text.bytes, text.size, source, origin);
    text_free(&text);
}

static void read_environment(struct source_words *words, const char *name,
                             enum option_source source, const char *origin) {
    const char *text = getenv(name);
    if (text)
        sources_split(words, text, strlen(text), source, origin);
}

// Whether to read the files of the working directory.
static bool local_files_count(const char *home) {
    struct stat here;
    struct stat there;
    if (!home || stat(".", &here) < 0 || !here.st_nlink)
        return false;
    return stat(home, &there) < 0 || here.st_dev != there.st_dev || here.st_ino != there.st_ino;
}

static void read_home(struct source_words *words, const char *home, const char *name,
                      enum option_source source, const char *origin) {
    if (!home || !*home)
        return;
    struct text path = {0};
    text_format(&path, "%s/%s", home, name);
    read_file(words, path.bytes, source, origin);
    text_free(&path);
}

void sources_read(struct source_words *words) {
    const char *home = getenv("HOME");
    bool local = local_files_count(home);
    read_home(words, home, ".valgrindrc", SOURCE_VALGRIND, "~/.valgrindrc");
    read_environment(words, "VALGRIND_OPTS", SOURCE_VALGRIND, "$VALGRIND_OPTS");
    if (local)
        read_file(words, ".valgrindrc", SOURCE_VALGRIND, "./.valgrindrc");
    read_home(words, home, ".quernrc", SOURCE_QUERN, "~/.quernrc");
    read_environment(words, "QUERN_OPTS", SOURCE_QUERN, "$QUERN_OPTS");
    if (local)
        read_file(words, ".quernrc", SOURCE_QUERN, "./.quernrc");
}

void sources_free(struct source_words *words) {
    for (size_t i = 0; i < words->count; i++)
        free(words->words[i].text);
    free(words->words);
    *words = (struct source_words){0};
}
