// A stack whose frames have their names, which stay valid as long as the struct symbols.
//
// Addresses that lie in calls (callers) are the byte before the return address, as they are shown.
// Inlined functions are frames of their own. Frames below main are kept for suppressions but not
// counted in `shown`, unless the options ask for them. Supervisor only.
#ifndef QUERN_REPORT_NAMED_STACK_H
#define QUERN_REPORT_NAMED_STACK_H

#include "report/shared/stack_text.h"
#include "symbols/symbols.h"

struct named_frame {
    uint64_t address;
    struct symbol_frame symbol;
};

struct named_stack {
    struct named_frame *frames;
    size_t count;
    size_t shown; // number of frames, from the first, that the user sees
};

// The names of addresses of one process that have been looked up; a second look-up is cheap. Clear
// it whenever the mappings of the process change.
struct named_cache;
struct named_cache *named_cache_new(void);
void named_cache_clear(struct named_cache *);
void named_cache_free(struct named_cache *);

// Names a stack; options decide how deep it goes and where it ends.
struct named_stack named_stack_make(struct symbols *, struct named_cache *, const struct stack *,
                                    const struct stack_text_options *);
void named_stack_free(struct named_stack *);

#endif
