// Client requests: what an annotated target asks of the tool it runs under.
#include <string.h>

#include "engine/hooks/hooks.h"
#include "engine/memory/target.h"
#include "engine/run/run.h"
#include "engine/task.h"

enum request_code {
    REQUEST_RUNNING_ON = 0x1001,
    REQUEST_DISCARD_TRANSLATIONS = 0x1002,
    REQUEST_REPLACES_MALLOC = 0x1003,
    REQUEST_TOOL_NAME = 0x1004,
    REQUEST_VERSION = 0x1005,
    REQUEST_PRINT = 0x1401,
    REQUEST_PRINT_BACKTRACE = 0x1402,
    REQUEST_PRINT_BY_REFERENCE = 0x1403,
    REQUEST_PRINT_BACKTRACE_BY_REFERENCE = 0x1404,
    REQUEST_CALL0 = 0x1101, // function(thread)
    REQUEST_CALL3 = 0x1104, // function(thread, a, b, c)
};
enum { KIND_SIZE = 3 };
enum { VERSION = 328 }; // of Valgrind, whose requests are answered: 3.28

// Writes as much of the tool's name as fits, terminated. The size of a buffer for all of it.
static uint64_t write_tool_name(uint64_t buffer, uint64_t size) {
    size_t whole = strlen(tool->name) + 1;
    if (buffer && size) {
        char name[64] = "";
        size_t count = size < whole ? size : whole;
        if (count > sizeof name)
            count = sizeof name;
        memcpy(name, tool->name, count - 1);
        if (target_write(buffer, name, count) == 0)
            TOOL_HOOK(stored, buffer, count);
    }
    return whole;
}

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
    case REQUEST_REPLACES_MALLOC:
        return tool->allocator_modules != NULL;
    case REQUEST_TOOL_NAME:
        return write_tool_name(words[1], words[2]);
    case REQUEST_VERSION:
        return VERSION;
    case REQUEST_PRINT:
    case REQUEST_PRINT_BY_REFERENCE:
        return print_request(words[1], words[2], false);
    case REQUEST_PRINT_BACKTRACE:
    case REQUEST_PRINT_BACKTRACE_BY_REFERENCE:
        return print_request(words[1], words[2], true);
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
