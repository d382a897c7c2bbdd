// What a dhat.out file says (dhatFileVersion 2): program points and how their blocks were used.
//
// Words
//   point   a call stack at which blocks were allocated (or bytes copied, or events occurred), with
//           sums over all its blocks
//   frame   a line of text, "0xADDRESS: FUNCTION (FILE:LINE)"; frame 0 is the root of all stacks
//   peak    of a point: when it had most bytes; global: t-gmax, when all points together had
//
// Names of fields are those of the file. A writer calls dhat_file_init, then dhat_file_frame and
// dhat_file_add for each point, then dhat_out. Numbers that a file does not have (no lifetimes, no
// accesses) are 0. Supervisor context.
#ifndef QUERN_REPORT_DHAT_FILE_H
#define QUERN_REPORT_DHAT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/map.h"

struct dhat_point {
    uint64_t tb, tbk; // all bytes and blocks
    uint64_t tl;      // lifetimes of all blocks together
    uint64_t mb, mbk; // at the point's peak
    uint64_t gb, gbk; // at the global peak
    uint64_t eb, ebk; // at the end
    uint64_t rb, wb;  // bytes read and written
    uint32_t *acc;    // accesses of each byte, where all blocks are of one small size; NULL: none
    size_t acc_count;
    uint32_t *fs; // frames, innermost first
    size_t fs_count;
};

struct dhat_file {
    char *mode, *verb;     // "heap", "Allocated"
    bool bklt, bkacc;      // lifetimes, accesses are known
    char *bu, *bsu, *bksu; // units: byte, bytes, blocks; NULL: these
    char *tu, *Mtu;        // unit of time, a million of them
    uint64_t tuth;         // what lives no longer is short-lived
    char *cmd;
    int64_t pid;
    uint64_t te, tg; // time at the end, at the global peak
    struct dhat_point *points;
    size_t point_count;
    struct map_texts frames;
    char **paths; // of the source files of frames, where known; not part of a file
    size_t path_count;
};

// An empty file. Texts are copied; units stay as they are named above.
void dhat_file_init(struct dhat_file *, const char *mode, const char *verb, const char *command,
                    int64_t pid);
uint32_t dhat_file_frame(struct dhat_file *, const char *text);
// Says in which source file a frame is.
void dhat_file_path(struct dhat_file *, uint32_t frame, const char *path);
// Owns acc and fs from here on.
void dhat_file_add(struct dhat_file *, const struct dhat_point *);
void dhat_file_free(struct dhat_file *);

// Writes it as Valgrind does.
void dhat_out(FILE *out, const struct dhat_file *);

// Whether a file that begins like this may be one.
bool dhat_file_is_one(const char *start, size_t size);
// Reads one, of any program that writes version 2. A message to be freed, or NULL; the file is to
// be freed in both cases.
char *dhat_file_read(FILE *in, struct dhat_file *);

#endif
