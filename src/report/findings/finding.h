// Findings and losses as reports know them: with the names of all their addresses.
//
// Both are told in parts, which are the same for every form of output: a headline, stacks, and
// further remarks. Supervisor only; strings live as long as the struct symbols.
#ifndef QUERN_REPORT_FINDING_H
#define QUERN_REPORT_FINDING_H

#include "base/text.h"
#include "report/shared/named_stack.h"
#include "profile/findings/leaks.h"
#include "wire/findings.h"

struct naming {
    struct symbols *symbols;
    struct named_cache *cache;
    pid_t pid;
    const struct stack_text_options *options;
};

struct finding {
    unsigned references;
    struct wire_finding *facts; // the message, pcs and names included
    const char *names[2];
    struct named_stack stacks[FINDING_STACKS];
    // Of the address, where the target knows nothing better.
    bool has_data;
    struct symbol_data data;
    const char *section, *object;
    struct named_stack code;   // the one frame of an address in code
    struct symbol_frame frame; // of PLACE_STACK
    bool has_variable;
    struct symbol_variable variable; // what the address is in, of locals or globals
};

struct named_loss {
    struct loss facts;
    struct named_stack stack;
    struct symbol_data holder_data;   // of HELD_BY_DATA; name NULL: not known
    struct symbol_frame holder_frame; // of HELD_BY_STACK
    bool is_callers;                  // the stack begins with who called the allocating function
};

// A finding has one reference when it is made. `size` bytes of message, which has been checked.
struct finding *finding_make(const struct naming *, const struct wire_finding *, size_t size);
struct finding *finding_share(struct finding *);
void finding_drop(struct finding *);

void named_loss_make(struct named_loss *, const struct naming *, const struct loss *,
                     const uint64_t *pcs, size_t count);
// Names the holder; only for those that are shown.
void named_loss_name_holder(struct named_loss *, const struct naming *);
void named_loss_free(struct named_loss *);

// The kind as suppressions call it, and as XML does.
void finding_suppression_kind(const struct finding *, struct text *);
const char *finding_xml_kind(const struct finding *);
// The line between kind and stack of a suppression; false: there is none.
bool finding_parameter(const struct finding *, struct text *);

// ---- telling ----

struct teller {
    void (*headline)(void *context, const char *text);
    void (*stack)(void *context, const struct named_stack *);
    void (*remark)(void *context, const char *text);
    void *context;
};

void finding_tell(const struct finding *, const struct stack_text_options *, const struct teller *);
// The loss is the number `index` of `count`, from 1.
void loss_tell(const struct named_loss *, size_t index, size_t count, bool is_delta,
               const struct stack_text_options *, const struct teller *);

// What holds a reachable loss, once it is named; nothing if that is not known.
void loss_holder_text(const struct named_loss *, const struct stack_text_options *, struct text *);

// A number as Valgrind shows it: 1,234,567.
void text_commas(struct text *, uint64_t number);
// " (+1,234)" or " (-5)"; nothing if not is_delta.
void text_delta(struct text *, uint64_t now, uint64_t before, bool is_delta);

// A suppression that matches the error, as a file holds it, without the prefix of the log.
void finding_suppression(const struct finding *, struct text *);
void loss_suppression(const struct named_loss *, struct text *);

#endif
