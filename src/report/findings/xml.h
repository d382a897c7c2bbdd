// Findings in Valgrind's XML, protocol 4 or 6 (with summaries, as from 3.26 on): what IDEs and
// build servers read. The elements, their order and their indentation are Valgrind 3.19's.
#ifndef QUERN_REPORT_FINDING_XML_H
#define QUERN_REPORT_FINDING_XML_H

#include "report/findings/named_finding.h"

struct xml_head {
    const char *const *preamble; // lines, NULL at the end
    int pid, parent;
    const char *tool;
    unsigned protocol;
    const char *comment;           // raw; NULL: none
    const char *const *qualifiers; // names and values of %q in the file's name; NULL at the end
    const char *const *own_words;  // the command line up to the program; NULL at the end
    const char *const *words;      // the program and its arguments
};

void xml_begin(struct text *, const struct xml_head *);
// Of protocol 6.
struct xml_heap {
    uint64_t live_bytes, live_blocks, allocations, frees, bytes;
};
void xml_heap_summary(struct text *, const struct xml_heap *);
void xml_leak_summary(struct text *, const struct leak_sums *);
void xml_error_summary(struct text *, uint64_t errors, uint64_t contexts, uint64_t suppressed,
                       uint64_t suppressed_contexts);
void xml_status(struct text *, const char *state, uint64_t milliseconds);
// With a suppression to go with it if `suppression` is not NULL.
void xml_stack(struct text *, const struct named_stack *);
void xml_finding(struct text *, const struct named_finding *, uint64_t unique,
                 const struct stack_text_options *, bool suppression);
void xml_loss(struct text *, const struct named_loss *, uint64_t unique, size_t index, size_t count,
              bool is_delta, const struct stack_text_options *, bool suppression);
struct xml_signal {
    int thread, signal, code;
    const char *name, *event; // event may be NULL
    uint64_t address;
    const struct named_stack *stack;
};
void xml_signal(struct text *, const struct xml_signal *);
// Text of the program's own (client requests); the stack may be NULL.
void xml_message(struct text *, int thread, const char *thread_name, const char *message,
                 const struct named_stack *);

// Text with the characters that mean something to XML replaced.
void xml_escaped(struct text *, const char *);

#endif
