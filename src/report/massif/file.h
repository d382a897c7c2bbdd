// Reading massif.out files, of Quern and of any version of Valgrind.
//
// The parser trusts nothing: a file that does not follow the grammar is refused with the line where
// it does not. Lines that begin with # are comments; a # further on is part of the line, because
// names such as {lambda(int)#1} hold it.
#ifndef QUERN_REPORT_MASSIF_FILE_H
#define QUERN_REPORT_MASSIF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MASSIF_FILE_DEPTH 2000 // of a tree

struct massif_file_node {
    size_t children; // they follow, each with its own
    uint64_t bytes;
    char *text;
};

enum massif_file_kind { MASSIF_FILE_EMPTY, MASSIF_FILE_DETAILED, MASSIF_FILE_PEAK };

struct massif_file_snapshot {
    uint64_t number, time, heap, extra, stacks;
    enum massif_file_kind kind;
    size_t first_node; // the root of its tree, unless empty
};

struct massif_file {
    char *description; // "" if there is none
    char *command;
    char *time_unit;
    struct massif_file_snapshot *snapshots;
    size_t snapshot_count;
    struct massif_file_node *nodes; // of all trees, in the order of the file
    size_t node_count;
};

// Whether this is the beginning of a massif.out.
bool massif_file_is_one(const char *start, size_t size);
// NULL, or what is wrong, to be freed. The file is to be freed in either case.
char *massif_file_read(FILE *in, struct massif_file *file);
void massif_file_free(struct massif_file *file);

#endif
