/*
 * stack_text: a stack as lines of text, in Valgrind's form.
 *
 *     at 0x109374: compare(void const*, void const*) (sort.cc:10)
 *     by 0x4AD6BF3: msort_with_tmp.part.0 (msort.c:64)
 *     by 0x10913D: main (sort.cc:13)
 *
 * Callers are shown with the address before their return address, which lies in the call. Inlined
 * functions have lines of their own with the address of the function around them. The stack ends
 * after main, or after the start code of libc, which goes by the name (below main).
 *
 * What the struct symbols was made with decides whether names are demangled (--demangle) and
 * whether inlined functions have lines of their own (--read-inline-info).
 *
 * Names come from the target: control characters, and bytes that are not UTF-8, are written as
 * \xNN. Supervisor only.
 */
#ifndef QUERN_REPORT_STACK_TEXT_H
#define QUERN_REPORT_STACK_TEXT_H

#include "symbols/symbols.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { STACK_TEXT_DEFAULT_CALLERS = 12 };

struct stack_text_options {
    unsigned callers;     /* addresses shown at most (--num-callers); 0 stands for the default */
    bool show_below_main; /* do not stop at main */
    bool symbol_offsets;  /* name+offset (--sym-offsets) */
    bool variables;       /* addresses are described by variables (--read-var-info) */
    /* Show directories, cut behind the first of these that is found in it; empty: none is cut. */
    const char *const *fullpath_after;
    size_t fullpath_after_count; /* 0: no directories */
};

struct stack {
    pid_t pid;
    const uint64_t *addresses; /* innermost first */
    size_t count;
    bool first_is_return_address; /* as all others are */
};

/* Calls line for each line, without a newline and without the "==PID==" prefix. */
void stack_text(struct symbols *symbols, const struct stack *stack,
                const struct stack_text_options *options,
                void (*line)(void *context, const char *text), void *context);

/* One such line; the first of a stack says "at", the others "by". frame may be NULL. */
void stack_text_line(bool first, uint64_t address, const struct symbol_frame *frame,
                     const struct stack_text_options *options,
                     void (*line)(void *context, const char *text), void *context);

/* The part behind the address: "FUNC (FILE:LINE)". frame may be NULL: "???". */
void stack_text_frame(FILE *out, const struct symbol_frame *frame,
                      const struct stack_text_options *options);

/* Whether the frame is main, or one of those that call it. */
bool stack_text_is_main(const struct symbol_frame *frame);
/* Whether it is one of those that call main, which go by the name (below main). */
bool stack_text_is_below_main(const struct symbol_frame *frame);
/* The length of the UTF-8 character at text; 0 if it is invalid or a control character. */
size_t stack_text_printable(const unsigned char *text);

/* Writes a name of the target so that it cannot steer a terminal. */
void stack_text_escaped(FILE *out, const char *text);

#endif
