// Filters of system calls (seccomp).
//
// A filter of the target's holds for the whole thread, also for the calls that the engine makes in
// it for itself: to map memory, to speak to the supervisor. So the kernel gets the target's filter
// with a few instructions in front that look where the call comes from: what the engine's own code
// and libraries call passes, except new threads, processes and programs. Memory and signal
// handlers, which the engine manages in the target's name, pass as well. The rest (answers,
// signals, listeners, what children inherit) is the kernel's. A program that is executed and
// followed has the engine elsewhere, where the filters of its past hold for it.
#include <errno.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "engine/cache/block.h"
#include "engine/hooks/hooks.h"
#include "engine/memory/target.h"
#include "engine/enter.h"
#include "engine/signal/signal.h"
#include "engine/sys/sys.h"
#include "engine/task.h"

enum { RANGES = 16, RANGE_CODE = 6 };

// Made by the engine in the target's name; where target_syscall is used the place tells.
static const uint32_t targets_calls[] = {SYS_clone, SYS_clone3, SYS_fork,
                                         SYS_vfork, SYS_execve, SYS_execveat};
enum { TARGETS_CALLS = sizeof targets_calls / sizeof *targets_calls };
enum { IN_FRONT = RANGES * RANGE_CODE + 1 + 1 + TARGETS_CALLS + 1 + 1 };

// Where the engine's own calls come from: the kernel shows the address after the instruction.
struct ranges {
    unsigned count;
    struct range {
        uint64_t start, end;
    } all[RANGES];
};

static void add_range(struct ranges *ranges, uint64_t start, uint64_t end) {
    if (start < end && start >> 32 == (end - 1) >> 32 && ranges->count < RANGES)
        ranges->all[ranges->count++] = (struct range){start, end};
}

static int add_module(struct dl_phdr_info *module, size_t size, void *ranges) {
    uint64_t hole = (uint64_t)target_syscall_end;
    for (unsigned i = 0; i < module->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &module->dlpi_phdr[i];
        uint64_t start = module->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        if (hole >= start && hole < end) {
            add_range(ranges, start, hole);
            start = hole + 1;
        }
        add_range(ranges, start, end);
    }
    return 0;
}

#define PLACE                 offsetof(struct seccomp_data, instruction_pointer)
#define LOAD(at)              (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define JUMP_IF(how, k, t, f) (struct sock_filter) BPF_JUMP(BPF_JMP | how | BPF_K, k, t, f)
#define JUMP(distance)        (struct sock_filter) BPF_STMT(BPF_JMP | BPF_JA, distance)

// Returns how many instructions stand in front of the target's.
static unsigned write_front(struct sock_filter *code) {
    struct ranges ranges = {0};
    dl_iterate_phdr(add_module, &ranges);
    unsigned used = 0;
    for (unsigned i = 0; i < ranges.count; i++) {
        const struct range *range = &ranges.all[i];
        unsigned to_next = (ranges.count - 1 - i) * RANGE_CODE;
        code[used++] = LOAD(PLACE + 4);
        code[used++] = JUMP_IF(BPF_JEQ, (uint32_t)(range->start >> 32), 0, 4);
        code[used++] = LOAD(PLACE);
        code[used++] = JUMP_IF(BPF_JGE, (uint32_t)range->start, 0, 2);
        code[used++] = JUMP_IF(BPF_JGT, (uint32_t)(range->end - 1), 1, 0);
        code[used++] = JUMP(to_next + 1);
    }
    code[used++] = JUMP(1 + TARGETS_CALLS + 1);
    code[used++] = LOAD(offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < TARGETS_CALLS; i++)
        code[used++] = JUMP_IF(BPF_JEQ, targets_calls[i], TARGETS_CALLS - i, 0);
    code[used++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    // A filter begins with 0 in its accumulator.
    code[used++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, 0);
    return used;
}

// The third argument of seccomp and of prctl is the program.
static long install(long number, struct sys_arguments *args) {
    struct sock_fprog program;
    if (target_read(&program, args->a[2], sizeof program) || !program.len ||
        program.len + IN_FRONT > BPF_MAXINSNS)
        return sys_pass(number, args);
    struct sock_filter *code = malloc((program.len + IN_FRONT) * sizeof *code);
    if (!code)
        return -ENOMEM;
    unsigned front = write_front(code);
    long result = -EFAULT;
    if (!target_read(code + front, (uint64_t)program.filter, program.len * sizeof *code)) {
        struct sock_fprog whole = {.len = (unsigned short)(front + program.len), .filter = code};
        struct sys_arguments changed = *args;
        changed.a[2] = (uint64_t)&whole;
        result = sys_pass(number, &changed);
    }
    free(code);
    return result;
}

long sys_seccomp(long number, struct sys_arguments *args) {
    if ((uint32_t)args->a[0] == SECCOMP_SET_MODE_FILTER)
        return install(number, args);
    return sys_pass(number, args);
}

// ---- syscall user dispatch ---------------------------------------------------------------------
//
// The target gets a signal for calls from outside of a range of its code, if a byte says so. For
// the kernel, no call comes from the target's code.

#define DISPATCH_CODE  2 // SYS_USER_DISPATCH, which older headers lack
#define DISPATCH_ALLOW 0
#define DISPATCH_BLOCK 1

bool filters_dispatch(long number) {
    uint8_t selector = DISPATCH_BLOCK;
    uint64_t flags = self->flags;
    if (self->pc - self->dispatch.start < self->dispatch.size)
        return false;
    if (self->dispatch.selector && target_read(&selector, self->dispatch.selector, 1)) {
        signal_raise(SIGSEGV, SI_KERNEL, 0, 0, 0);
        return true;
    }
    if (selector == DISPATCH_ALLOW)
        return false;
    self->gpr[RCX] = self->pc;
    self->gpr[R11] = flags;
    TOOL_HOOK(register_set, RCX);
    TOOL_HOOK(register_set, R11);
    signal_raise(SIGSYS, DISPATCH_CODE, self->pc, 0, 0);
    self->flags = flags; // not a fault
    self->fault.info.si_syscall = (int)number;
    self->fault.info.si_arch = AUDIT_ARCH_X86_64;
    return true;
}

static long set_dispatch(const struct sys_arguments *args) {
    uint64_t mode = args->a[1], start = args->a[2], size = args->a[3], selector = args->a[4];
    if (mode > PR_SYS_DISPATCH_ON)
        return -EINVAL;
    if (mode == PR_SYS_DISPATCH_OFF ? start || size || selector : start && start + size <= start)
        return -EINVAL;
    if (selector >> 47)
        return -EFAULT;
    self->dispatch.is_on = mode == PR_SYS_DISPATCH_ON;
    self->dispatch.start = start;
    self->dispatch.size = size;
    self->dispatch.selector = selector;
    cache_forbid_syscalls();
    return 0;
}

// ---- prctl -------------------------------------------------------------------------------------

// The kernel's answer would be the engine's own.
static long get_tid_address(long number, const struct sys_arguments *args) {
    long result = sys_pass(number, args);
    if (result == 0 && target_write(args->a[1], &self->clear_child_tid, 8))
        return -EFAULT;
    return result;
}

long sys_prctl(long number, struct sys_arguments *args) {
    if ((uint32_t)args->a[0] == PR_SET_MM)
        return -EPERM; // would describe the engine's memory, not the target's
    if ((uint32_t)args->a[0] == PR_GET_TID_ADDRESS)
        return get_tid_address(number, args);
    if ((uint32_t)args->a[0] == PR_SET_SYSCALL_USER_DISPATCH)
        return set_dispatch(args);
    if ((uint32_t)args->a[0] == PR_SET_SECCOMP && args->a[1] == SECCOMP_MODE_FILTER)
        return install(number, args);
    return sys_pass(number, args);
}
