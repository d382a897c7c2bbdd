// Findings and losses (profile/findings) as reports know them: with the names of their addresses.
//
// Every form of output writes them in the same parts: a headline, stacks, and remarks.
// Supervisor only; strings live as long as the struct symbols.
#ifndef QUERN_REPORT_NAMED_FINDING_H
#define QUERN_REPORT_NAMED_FINDING_H

#include "base/text.h"
#include "profile/findings/finding.h"
#include "profile/findings/leaks.h"
#include "profile/heap/leak_graph.h"
#include "report/shared/named_stack.h"

struct naming {
    struct symbols *symbols;
    struct named_cache *cache;
    pid_t pid;
    const struct stack_text_options *options;
};

struct named_finding {
    unsigned references;
    struct finding_facts facts;
    char *names[2];
    struct named_stack stacks[FINDING_STACKS];
    // What symbols know of the address; only if the target knows nothing more exact.
    bool has_data;
    struct symbol_data data;
    const char *section, *object;
    struct named_stack code;   // the one frame of an address in code
    struct symbol_frame frame; // of PLACE_STACK
    bool has_variable;
    struct symbol_variable variable; // the local or global variable that holds the address
};

struct named_loss {
    struct loss facts;
    struct named_stack stack;
    struct symbol_data holder_data;   // of HELD_BY_DATA; name NULL: not known
    struct symbol_frame holder_frame; // of HELD_BY_STACK
    bool is_callers;                  // the stack begins with the caller of the allocating function
};

// A new finding has one reference.
struct named_finding *named_finding_make(const struct naming *, const struct finding *);
struct named_finding *named_finding_share(struct named_finding *);
void named_finding_drop(struct named_finding *);

void named_loss_make(struct named_loss *, const struct naming *, const struct loss *,
                     const uint64_t *pcs, size_t count);
// Names the holder. That is slow, so only losses that are shown need it.
void named_loss_name_holder(struct named_loss *, const struct naming *);
void named_loss_free(struct named_loss *);

// ---- write.c: the words, which are Valgrind's ----

struct finding_writer {
    void (*headline)(void *context, const char *text);
    void (*stack)(void *context, const struct named_stack *);
    void (*remark)(void *context, const char *text);
    void *context;
    // What stands before a further stack of the finding. NULL: as a remark.
    void (*paragraph)(void *context, const char *text);
};

void finding_write(const struct named_finding *, const struct stack_text_options *,
                   const struct finding_writer *);
// Only what it says of the address.
void finding_write_place(const struct named_finding *, const struct stack_text_options *,
                         const struct finding_writer *);
// The loss is the number `index` of `count`, from 1.
void loss_write(const struct named_loss *, size_t index, size_t count, bool is_delta,
                const struct stack_text_options *, const struct finding_writer *);

// What holds a reachable loss, once it is named; nothing if that is not known.
void loss_holder_text(const struct named_loss *, const struct stack_text_options *, struct text *);

// " (+1,234)" or " (-5)"; nothing if not is_delta.
void text_delta(struct text *, uint64_t now, uint64_t before, bool is_delta);

// ---- leak_sums.c: the summary of a search for leaks ----

struct leak_sums {
    uint64_t bytes[LEAK_KINDS + 1], blocks[LEAK_KINDS + 1]; // the last is for suppressed ones
    uint64_t heuristic_bytes[LEAK_HEURISTICS], heuristic_blocks[LEAK_HEURISTICS];
};
// Adds blocks that a search in a graph has classified.
void leak_sums_add(struct leak_sums *, const struct leak_graph_block *, size_t count);
// `before` is what the search before has found; NULL: differences are not shown.
void leak_sums_text(const struct leak_sums *, const struct leak_sums *before, struct text *);

// ---- suppression_text.c ----

struct suppression;
struct suppressions;

// A suppression that matches, as a file holds it, without the prefix of the log.
void finding_suppression(const struct named_finding *, struct text *);
void loss_suppression(const struct named_loss *, struct text *);
// The suppression that hides it; NULL: none.
struct suppression *finding_suppressed_by(const struct named_finding *, struct suppressions *);
// The stack is the loss's own, or one that stands for it.
struct suppression *loss_suppressed_by(const struct named_loss *, const struct named_stack *,
                                       struct suppressions *);

#endif
