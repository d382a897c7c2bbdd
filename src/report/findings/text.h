// Findings and losses as the log shows them, without the prefix of its lines. The texts equal
// Valgrind's. Functions append to the text.
#ifndef QUERN_REPORT_FINDING_TEXT_H
#define QUERN_REPORT_FINDING_TEXT_H

#include "report/findings/named_finding.h"

void finding_text(const struct named_finding *, const struct stack_text_options *, struct text *);
// Only what it says of the address.
void finding_place_text(const struct named_finding *, const struct stack_text_options *,
                        struct text *);
void loss_text(const struct named_loss *, size_t index, size_t count, bool is_delta,
               const struct stack_text_options *, struct text *);

#endif
