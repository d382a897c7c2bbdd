// Client requests: what an annotated target asks of the tool it runs under.
#include "engine/hooks/hooks.h"
#include "engine/memory/target.h"
#include "engine/run/run.h"
#include "engine/task.h"

enum request_code {
    REQUEST_RUNNING_ON = 0x1001,
    REQUEST_DISCARD_TRANSLATIONS = 0x1002,
    REQUEST_CALL0 = 0x1101, // function(thread)
    REQUEST_CALL3 = 0x1104, // function(thread, a, b, c)
};
enum { KIND_SIZE = 3 };

static uint64_t answer(const uint64_t words[6], uint64_t otherwise) {
    uint64_t result;
    if (words[0] >= REQUEST_CALL0 && words[0] <= REQUEST_CALL3)
        return call_target(words[1], words + 2, words[0] - REQUEST_CALL0);
    if (tool->request && tool->request(words, &result))
        return result;
    switch (words[0]) {
    case REQUEST_RUNNING_ON:
        return 1;
    case REQUEST_DISCARD_TRANSLATIONS: // changes of code are noticed anyway
        return 0;
    default:
        return otherwise;
    }
}

void client_request(void) {
    uint8_t kind[KIND_SIZE];
    uint64_t words[6];
    if (target_read(kind, self->pc - KIND_SIZE, sizeof kind))
        return;
    switch (kind[2]) {
    case 0xdb: // xchg rbx, rbx: a request
        if (target_read(words, self->gpr[RAX], sizeof words) == 0)
            self->gpr[RDX] = answer(words, self->gpr[RDX]);
        TOOL_HOOK(register_set, RDX);
        break;
    case 0xc9: // xchg rcx, rcx: address of the function that was wrapped
        self->gpr[RAX] = self->wrapped;
        TOOL_HOOK(register_set, RAX);
        break;
    case 0xd2: { // xchg rdx, rdx: call rax, the function itself and not what stands for it
        uint64_t sp = self->gpr[RSP] - 8;
        if (target_write(sp, &self->pc, 8) == 0) {
            TOOL_HOOK(stored, sp, 8);
            self->gpr[RSP] = sp;
            self->pc = self->gpr[RAX];
            self->unredirected = true;
        }
        break;
    }
    default:
        break;
    }
}
