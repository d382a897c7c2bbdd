// What memory that memcheck found lost says: blocks that keep each other alive, and nobody else
// does.
#include <stdlib.h>

#include "base/text.h"
#include "report/diagnose/diagnose.h"

void diagnose_loss(const struct named_loss *loss, struct diagnoses *diagnoses) {
    const struct loss *facts = &loss->facts;
    char digits[4][32];
    struct text text = {0};
    if (!facts->cycle || facts->kind != LEAK_DEFINITE)
        return;
    text_format(&text,
                "%s blocks point to each other in a circle, and nothing else points to them: %s "
                "bytes in %s blocks of this place are lost, and %s bytes that they lead to.",
                text_number(digits[0], facts->cycle), text_number(digits[1], facts->bytes),
                text_number(digits[2], facts->blocks),
                text_number(digits[3], facts->indirect_bytes));
    struct diagnosis *diagnosis =
        diagnoses_add(diagnoses, DIAGNOSIS_CYCLE, CERTAINTY_CERTAIN,
                      facts->bytes + facts->indirect_bytes, text_take(&text));
    for (size_t i = 0; i < loss->stack.shown; i++) {
        const struct named_frame *frame = &loss->stack.frames[i];
        char *path = result_path(&frame->symbol);
        char *label = symbol_frame_label(&frame->symbol);
        diagnosis_add_frame(diagnosis,
                            &(struct result_frame){.function = label,
                                                   .object = (char *)frame->symbol.object,
                                                   .path = path,
                                                   .line = frame->symbol.line,
                                                   .address = frame->address});
        free(label);
        free(path);
    }
}
