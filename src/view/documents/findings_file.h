// Findings read back from XML, protocol 4: what memcheck writes with --xml=yes, ours and
// Valgrind's.
//
// Words:
//   finding  an error or a loss: what it is, and sections
//   section  a text and the stack below it; the first is where it happened, others are where the
//            block was allocated or freed, where a value comes from, what holds it
//
// The parser trusts nothing. A file that ends early gives the findings before that, and a notice.
// Supervisor context.
#ifndef QUERN_VIEW_FINDINGS_FILE_H
#define QUERN_VIEW_FINDINGS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FINDINGS_DEPTH    512    // frames of a stack
#define FINDINGS_SECTIONS 32     // of a finding
#define FINDINGS_MOST     200000 // in a file

struct findings_frame {
    char *address, *object, *function, *directory, *file; // NULL: missing
    uint32_t line;                                        // 0: missing
};

struct findings_section {
    char *text; // NULL: a stack without words
    struct findings_frame *frames;
    size_t frame_count;
};

struct findings_finding {
    char *unique, *kind, *thread, *what;
    uint64_t count; // how often; 1 if the file does not say
    bool is_leak;
    uint64_t leaked_bytes, leaked_blocks; // with what is lost along with these blocks
    uint64_t own_bytes; // without what other records of the file list: sums count nothing twice
    struct findings_section *sections;
    size_t section_count;
    char *suppression; // as a file holds it; NULL: none was written
};

struct findings_file {
    char *tool, *command, *pid, *state; // NULL: missing
    struct findings_finding *list;
    size_t count;
    bool is_whole;
};

bool findings_file_is_one(const char *start, size_t size);
// NULL, or what is wrong, to be freed; *file is to be freed unless it is NULL.
char *findings_file_read(int fd, struct findings_file **file);
void findings_file_free(struct findings_file *file);
// A suppression for the finding, as a file holds it: the file's own, or else made from its stack.
// To be freed.
char *findings_suppression(const struct findings_finding *finding);

#endif
