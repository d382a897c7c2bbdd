// The running thread's registers, stack and memory, and faults that a tool causes.
#include <signal.h>

#include "engine/enter.h"
#include "engine/hooks/hooks.h"
#include "engine/memory/memory.h"
#include "engine/memory/target.h"
#include "engine/signal/signal.h"
#include "engine/stack/stack.h"
#include "engine/task.h"

// The C library's functions use vector registers as they please.
__attribute__((target("general-regs-only"))) void tool_with_vectors(tool_function *fn,
                                                                    void *argument) {
    uint8_t memory[XSTATE_MOST + 64];
    uint8_t *area = (uint8_t *)(((uint64_t)memory + 63) & ~63ul);
    for (unsigned i = 512; i < 576; i++)
        area[i] = 0; // the header: xsave leaves parts of it alone
    uint32_t low = xstate_features, high = xstate_features >> 32;
    uint32_t mxcsr = 0x1f80;
    uint8_t *before = self->vectors;
    if (self->where == IN_CODE && !before)
        self->vectors = area;
    __asm__ volatile("xsave64 (%0)" : : "r"(area), "a"(low), "d"(high) : "memory");
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    fn(argument);
    self->vectors = before;
    __asm__ volatile("xrstor64 (%0)" : : "r"(area), "a"(low), "d"(high) : "memory");
}

// Also called from functions that must leave vector registers alone.
#pragma GCC push_options
#pragma GCC target("general-regs-only")

uint64_t tool_register(unsigned number) {
    return self->gpr[number];
}

uint64_t *tool_registers(void) {
    return self->gpr;
}

uint64_t tool_flags(void) {
    return self->flags;
}

uint64_t tool_pc(void) {
    return self->pc;
}

uint64_t tool_access_address(const struct tool_access *access) {
    uint64_t address = access->displacement;
    if (access->base >= 0)
        address += self->gpr[access->base];
    if (access->index >= 0)
        address += self->gpr[access->index] * access->scale;
    if (access->narrow)
        address = (uint32_t)address;
    return address + (access->segment == SEGMENT_FS   ? self->fs_base
                      : access->segment == SEGMENT_GS ? self->gs_base
                                                      : 0);
}

int tool_direction(void) {
    return self->flags & FLAG_DIRECTION ? -1 : 1;
}

uint64_t tool_thread_pointer(void) {
    return self->fs_base;
}

void *tool_thread_state(void) {
    return self->tool;
}

#pragma GCC pop_options

__attribute__((target("general-regs-only"))) size_t tool_stack_quickly(uint64_t *pcs, size_t max) {
    return stack_of_task_quickly(pcs, max);
}

__attribute__((target("general-regs-only"))) uint32_t tool_stack_recall(void) {
    return stack_recall();
}

__attribute__((target("general-regs-only"))) void tool_stack_note(const uint64_t *pcs, size_t count,
                                                                  uint32_t value) {
    stack_note(pcs, count, value);
}

size_t tool_stack(uint64_t *pcs, size_t max) {
    return stack_of_task(pcs, max);
}

long tool_read(void *to, uint64_t from, size_t size) {
    return target_read(to, from, size);
}

long tool_write(uint64_t to, const void *from, size_t size) {
    return target_write(to, from, size);
}

enum { TRAP_PAGE_FAULT = 14, ERROR_WRITE = 2, ERROR_USER = 4 };

static void look_at_guarded_fault(void *is_own) {
    const struct queued_signal *fault = &self->guarded_fault;
    *(bool *)is_own = fault->number == SIGSEGV && fault->trap == TRAP_PAGE_FAULT &&
                      fault->error & ERROR_WRITE && memory_write_fault(fault->fault_address);
}

__attribute__((target("general-regs-only"))) bool tool_try(tool_function *fn, void *argument,
                                                           uint64_t *address) {
    while (!call_guarded(fn, argument)) {
        bool is_own;
        tool_with_vectors(look_at_guarded_fault, &is_own);
        if (!is_own) {
            *address = (uint64_t)self->guarded_fault.info.si_addr;
            return false;
        }
    }
    return true;
}

struct denied {
    uint64_t address;
    bool writes;
};

static void deny(void *argument) {
    const struct denied *denied = argument;
    int error = ERROR_USER | (denied->writes ? ERROR_WRITE : 0);
    signal_raise(SIGSEGV, SEGV_MAPERR, denied->address, TRAP_PAGE_FAULT, error);
}

__attribute__((target("general-regs-only"))) void tool_fault(uint64_t address, bool writes) {
    struct denied denied = {address, writes};
    if (!self->guard) {
        tool_with_vectors(deny, &denied);
        cache_abandon();
    }
    struct queued_signal *fault = &self->guarded_fault;
    fault->number = SIGSEGV;
    fault->info.si_code = SEGV_MAPERR;
    fault->info.si_addr = (void *)address;
    fault->trap = TRAP_PAGE_FAULT;
    fault->error = ERROR_USER | (writes ? ERROR_WRITE : 0);
    fault->fault_address = address;
    call_guarded_abandon();
}

__attribute__((target("general-regs-only"))) void tool_run_itself(void) {
    self->unreplaced = true;
}

void tool_raise(void) {
    const struct queued_signal *fault = &self->guarded_fault;
    signal_raise(fault->number, fault->info.si_code, (uint64_t)fault->info.si_addr, fault->trap,
                 fault->error);
}
