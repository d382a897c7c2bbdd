// x87: by physical register, with the top of the stack as the processor has it.
#include "tools/memcheck/track_parts.h"

track_function *track_x87(struct track *t, const ZydisDecodedInstruction *z) {
    return NULL;
}
