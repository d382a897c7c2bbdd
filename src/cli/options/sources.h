// Where options come from besides the command line.
//
// In this order, later ones win:
//   ~/.valgrindrc  $VALGRIND_OPTS  ./.valgrindrc  ~/.quernrc  $QUERN_OPTS  ./.quernrc
// Quern's sources follow Valgrind's: a configuration for Valgrind keeps working and can be
// corrected for Quern alone. Files are words separated by white space; ' and " quote; there is no
// escape. A file is ignored with a message unless it is a regular file of the user and not writable
// by everybody. ./ files are not read if the working directory is the home directory or is gone, or
// if $HOME is not set.
#ifndef QUERN_CLI_SOURCES_H
#define QUERN_CLI_SOURCES_H

#include <stddef.h>

#include "cli/options/options.h"

struct source_word {
    char *text;
    enum option_source source;
    const char *origin; // static text
};

struct source_words {
    struct source_word *words;
    size_t count;
};

// All words of all sources, in order. Ignored files are reported on stderr.
void sources_read(struct source_words *words);
void sources_free(struct source_words *words);
// Splits text into words as in an rc file and adds them.
void sources_split(struct source_words *words, const char *text, size_t size,
                   enum option_source source, const char *origin);

#endif
