#include "engine/load/file.h"
#include "engine/memory/target.h"
#include "engine/run/stack.h"
#include "engine/sys/maps.h"
#include "engine/task.h"
#include "unwind/unwind.h"

static bool read_word(void *context, uint64_t address, uint64_t *word) {
    return target_read(word, address, sizeof *word) == 0;
}

// Adds the module whose code is in this mapping.
static void add_module(const struct mapped_code *code, void *space) {
    struct file_view file;
    uint64_t address;
    if (!file_open(&file, code->path))
        return;
    if (file_code_address(&file, code->offset, &address))
        unwind_space_add_file(space, file.bytes, file.size, code->start - address, true);
    file_close(&file);
}

size_t stack_of_task(uint64_t *pcs, size_t max) {
    static const uint8_t numbers[UNWIND_REGISTERS] = {RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP,
                                                      R8,  R9,  R10, R11, R12, R13, R14, R15};
    static struct unwind_thread thread; // a fatal signal happens once
    struct unwind_space space;
    struct unwind_registers registers;
    if (unwind_space_open(&space) != UNWIND_OK)
        return 0;
    maps_for_each_code(0, UINT64_MAX, add_module, &space);
    for (unsigned i = 0; i < UNWIND_PC; i++)
        registers.value[i] = self->gpr[numbers[i]];
    registers.value[UNWIND_PC] = self->pc;
    struct unwind_memory memory = {.read = read_word};
    size_t count = unwind_stack(&space, &thread, &registers, &memory, pcs, max, NULL);
    unwind_space_close(&space);
    return count;
}
