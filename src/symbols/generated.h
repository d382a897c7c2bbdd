/*
 * generated: names of code that is in no file.
 *
 * Runtimes that generate code (V8, LuaJIT, PHP, Java with an agent) write what they have generated
 * to /tmp/perf-PID.map: a line "START SIZE NAME" for each piece, START and SIZE in hexadecimal.
 * Quern names addresses by this file where no mapped file does. Code is replaced: of several pieces
 * at an address, the last one in the file counts.
 *
 * Other runtimes (node --perf-prof, Java with perf's agent) write jit-PID.dump instead, and map its
 * first page so that profilers learn its path. It has binary records with times, so that an address
 * is named by what was there at a given time.
 *
 * Words
 *   piece    generated code: [start, end) and its name
 *   writer   the process that writes the map: its pid, user, root folder and time of start
 *
 * The map is hostile. Anyone may create a file in /tmp, and the number of an earlier process may be
 * the same. So it must be a regular file that belongs to the writer's user, this process's user or
 * root, no link, and not older than the writer. What is too large or malformed is skipped.
 * A map is read at the first look-up, and again when it has grown.
 *
 * Pieces may also come from a recording (generated_add). Supervisor only; part of symbols.
 */
#ifndef QUERN_SYMBOLS_GENERATED_H
#define QUERN_SYMBOLS_GENERATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/names.h"

struct generated_piece {
    uint64_t start, end; /* [start, end) */
    const char *name;    /* kept by names */
    const char *file;    /* the same, with its path; NULL: not known */
    const char *base;    /* the file without folders */
    const char *folder;  /* the rest of its path; NULL: there is none */
    uint32_t line;       /* 0: not known */
    uint32_t order;      /* later pieces have higher numbers */
    uint64_t time;       /* from when on it is there, CLOCK_MONOTONIC; 0: not known */
    uint64_t reach;      /* the largest end in the piece's subtree */
};

struct generated;

struct generated *generated_new(struct names *names);
void generated_hold(struct generated *generated);
void generated_release(struct generated *generated);
/* Whether several processes have it. */
bool generated_is_shared(const struct generated *generated);

/* Names code by the map of process `writer` from now on. Call it while the writer runs, if
 * possible. A writer that is gone must have started after `since`, in seconds since 1970. */
void generated_follow(struct generated *generated, pid_t writer, int64_t since);
/* Names code by the records of a jit dump as well. */
void generated_follow_dump(struct generated *generated, const char *path);
/* Whether a file is a jit dump, by its name. */
bool generated_is_dump(const char *path);
/* `name` is code at [start, end). file may be NULL. */
void generated_add(struct generated *generated, uint64_t start, uint64_t end, const char *name,
                   const char *file, uint32_t line);

/* The latest piece at an address, good until the next call; or NULL. */
const struct generated_piece *generated_find(struct generated *generated, uint64_t address);
/* The same at a time; pieces of maps were always there. */
const struct generated_piece *generated_find_at(struct generated *generated, uint64_t address,
                                                uint64_t time);

/* Reads lines of a map; a last line without its end is left over. The number of bytes read. */
size_t generated_parse(struct generated *generated, const char *text, size_t size);

/* Reads the record of a jit dump at the start of bytes, of which a part is enough that holds its
 * name. The size of the whole record; 0: there is none, or it is damaged. */
uint64_t generated_parse_record(struct generated *generated, const uint8_t *bytes, size_t size);

void generated_check(const struct generated *generated);

#endif
