// What is wrong with a program's memory, in plain words: from a recording of its heap, from a
// dhat.out, and from what memcheck found lost.
//
// A diagnosis has evidence (numbers, a stack), a certainty and advice. Of a recording it is made of
// sums of the whole run and of what each stack held at a number of moments, so that is read twice.
// Bounds are in diagnose/rules.c and, for growth, in diagnose/causes.c: what lies below them is not
// worth anybody's time. Supervisor context.
#ifndef QUERN_REPORT_DIAGNOSE_H
#define QUERN_REPORT_DIAGNOSE_H

#include <stdio.h>

#include "base/text.h"
#include "report/dhat/file.h"
#include "report/heap/file.h"
#include "report/results/results.h"
#include "report/shared/own.h"

enum diagnosis_kind {
    DIAGNOSIS_GROWS,         // a cache or map that is never emptied
    DIAGNOSIS_HANDLERS,      // the same of something that is registered
    DIAGNOSIS_BUFFER,        // one buffer that is appended to
    DIAGNOSIS_THREAD_LOCAL,  // each thread has one of its own that grows
    DIAGNOSIS_CHANNEL,       // messages that nobody takes
    DIAGNOSIS_TASKS,         // tasks or threads that never end
    DIAGNOSIS_LOST,          // blocks that nothing points to; a search for leaks knows
    DIAGNOSIS_KEPT,          // the program gives nothing back, so growth cannot be told
    DIAGNOSIS_CAPACITY,      // a buffer that was enlarged and stays so
    DIAGNOSIS_THREADS,       // memory of threads that are gone or idle
    DIAGNOSIS_TEMPORARY,     // allocated for a moment only, very often
    DIAGNOSIS_FRAGMENTATION, // memory that the allocator cannot give back
    DIAGNOSIS_SPIKE,         // few stacks make the peak
    DIAGNOSIS_TINY,          // very many small blocks
    DIAGNOSIS_UNUSED,        // more is allocated than is used; known to dhat
    DIAGNOSIS_CYCLE,         // blocks that point to each other; memcheck knows, growth guesses
    DIAGNOSIS_KINDS,
};

enum certainty { CERTAINTY_POSSIBLE, CERTAINTY_LIKELY, CERTAINTY_CERTAIN };

struct diagnosis {
    enum diagnosis_kind kind;
    enum certainty certainty;
    uint32_t stack; // of a recording that it is about; 0: none in particular
    uint64_t bytes; // what is at stake: the larger, the earlier it is shown
    bool is_growth; // it grows (growth.h), by this much, plus or minus that, in bytes a second:
    double rate, rate_error;
    char *evidence;
    char *holder;                // what holds the memory, "" if that is not known
    struct result_frame *frames; // the stack it is about
    size_t frame_count;
    size_t own;   // the frame of the program's own that it is about; frame_count: none
    size_t outer; // own functions to pass over on the way there, because they allocate for others
    struct own_search search; // while frames are added
    size_t passed;
};

struct diagnoses {
    struct diagnosis *items;
    size_t count;
};

// Reads the recording once more; `file` is of the first reading of the same descriptor. NULL, or
// what is wrong, to be freed.
char *diagnose(int fd, const struct heap_file *file, struct diagnoses *diagnoses);
// How fast what grows does so, in bytes a second: the sum of its diagnoses, 0 without any.
double diagnoses_rate(const struct diagnoses *diagnoses);
// The same of a dhat.out file: what is allocated and never used. What it says does not depend on
// the file afterwards.
void diagnose_dhat(const struct dhat_file *file, struct diagnoses *diagnoses);
// Adds what a loss that memcheck has found tells: circles of blocks.
void diagnose_loss(const struct named_loss *loss, struct diagnoses *diagnoses);
// Takes the evidence; the holder and the frames may follow.
struct diagnosis *diagnoses_add(struct diagnoses *, enum diagnosis_kind, enum certainty,
                                uint64_t bytes, char *evidence);
// Adds the frames of the stacks that they are about.
void diagnoses_name(struct diagnoses *diagnoses, const struct heap_file *file);
void diagnosis_add_frame(struct diagnosis *, const struct result_frame *frame); // copied
// The weightiest first.
void diagnoses_sort(struct diagnoses *diagnoses);
// Drops the last ones beyond so many.
void diagnoses_cut(struct diagnoses *diagnoses, size_t count);
void diagnoses_free(struct diagnoses *diagnoses);

// Prints them, `callers` frames of each stack.
void diagnoses_print(FILE *out, const struct diagnoses *diagnoses, size_t callers);
#define DIAGNOSIS_CALLERS 8 // usually
// What a stack has at the peak if it is to be called growing.
#define DIAGNOSIS_GROWTH_BYTES (64ull << 10)
// Hands them to results, whether they fail a run or not.
void diagnoses_results(const struct diagnoses *diagnoses, struct results *results, int pid,
                       bool fails);
// A word for programs: growing-memory, and so on.
const char *diagnosis_word(enum diagnosis_kind kind);
// What people read.
const char *diagnosis_title(enum diagnosis_kind kind);
const char *diagnosis_advice(enum diagnosis_kind kind);
const char *diagnosis_certainty(enum certainty certainty);
// The advice that belongs to a rule of results; NULL: it is no diagnosis.
const char *diagnosis_rule_help(const char *rule);

#endif
