// Programs that Quern stands in for and whose words differ from those of its verbs. Each is a verb
// that only its name calls. For names.c; nobody else includes it.
#ifndef QUERN_CLI_NAMES_PARTS_H
#define QUERN_CLI_NAMES_PARTS_H

#include "cli/verbs.h"

extern const struct verb verb_callgrind_annotate, verb_cg_annotate, verb_cg_diff,
    verb_callgrind_control, verb_heaptrack_print;

// Writes the difference of the first two operands as a cachegrind.out, with the names changed by
// --mod-filename and --mod-funcname. WORDS_DONE, or WORDS_FAILED after a message.
int cg_diff_write(const struct arguments *arguments, FILE *out);

#endif
