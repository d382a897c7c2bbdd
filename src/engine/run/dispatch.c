// The dispatcher: between two stretches of translated code.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "engine/cache/block.h"
#include "engine/cache/version.h"
#include "engine/debug/debug.h"
#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/log.h"
#include "engine/memory/memory.h"
#include "engine/memory/target.h"
#include "engine/enter.h"
#include "engine/process.h"
#include "engine/run/run.h"
#include "engine/signal/signal.h"
#include "engine/sys/sys.h"
#include "engine/task.h"
#include "engine/translate/translate.h"

enum {
    TRAP_DEBUG = 1,
    TRAP_BREAKPOINT = 3,
    TRAP_PAGE_FAULT = 14,
    ERROR_WRITE = 2,
    ERROR_FETCH = 0x14
};
enum { OPCODE_PUSHF = 0x9c, VSYSCALL_STEP = 0x400 };
#define VSYSCALL_PAGE 0xffffffffff600000ul

static struct code_bytes code; // guarded by the cache lock

static bool wants_print(uint64_t pc) {
    if (!process.print_blocks)
        return false;
    return strcmp(process.print_blocks, "all") == 0 ||
           strtoul(process.print_blocks, NULL, 16) == pc;
}

static void return_to_caller(void) {
    if (target_read(&self->pc, self->gpr[RSP], 8) == 0)
        self->gpr[RSP] += 8;
    else
        signal_raise(SIGSEGV, SEGV_MAPERR, self->gpr[RSP], TRAP_PAGE_FAULT, 4);
}

// Old static programs ask for the time at fixed addresses, where the kernel answers in code's
// stead.
static bool perform_vsyscall(uint64_t pc) {
    static const int numbers[] = {SYS_gettimeofday, SYS_time, SYS_getcpu};
    uint64_t index = (pc - VSYSCALL_PAGE) / VSYSCALL_STEP;
    if (!process.has_vsyscall || pc % VSYSCALL_STEP || index >= 3)
        return false;
    struct sys_arguments args = {{self->gpr[RDI], self->gpr[RSI], self->gpr[RDX]}};
    self->gpr[RAX] = sys_pass(numbers[index], &args);
    return_to_caller();
    return true;
}

// The version for the calling thread, which is about to enter a block that no exit has led to.
// is_single: the block has one instruction and is run once.
static unsigned version_of_thread(bool is_single) {
    if (!tool->thread_set)
        return 0;
    uint64_t set = tool->thread_set(is_single) | (is_single ? 0 : self->wanted_set);
    if (!set && !self->forced)
        return 0;
    cache_lock();
    unsigned number = version_number(set, self->forced);
    cache_unlock();
    return number;
}

// That version of the block at pc, translated if need be. NULL: a signal has been raised, or try
// again.
static struct block *get_block(uint64_t pc, unsigned version) {
    struct block *block = block_find(pc, version);
    if (block)
        return block;
    if (pc >= VSYSCALL_PAGE && perform_vsyscall(pc))
        return NULL;
    if (pc >> 32 && cache_lookup == LOOKUP_TABLE) {
        translate_start_over(LOOKUP_BOTH);
        return NULL;
    }
    if (versions_full) {
        translate_start_over(LOOKUP_TABLE);
        return NULL;
    }
    memory_read_lock();
    cache_lock();
    int fault = 0;
    block = block_find(pc, version);
    if (!block) {
        fault = memory_fetch_code(pc, &code);
        if (!fault) {
            block = translate_block(&code, version);
            if (block && wants_print(pc))
                translate_print(block, &code);
        }
    }
    cache_unlock();
    memory_unlock();
    if (fault)
        raise_fetch_fault(pc, fault);
    else if (!block)
        translate_start_over(LOOKUP_TABLE);
    return block;
}

static void modified(uint64_t pc, unsigned version) {
    memory_read_lock();
    cache_lock();
    struct block *block = block_find(pc, version);
    if (block)
        cache_invalidate(block->pc, block->pc + block->guest_size);
    cache_unlock();
    memory_unlock();
}

// The function is tried again when the handler returns.
static void replacement_raised(uint64_t pc) {
    const struct hooked_function *hooked = function_find(pc);
    self->pc = pc;
    if (hooked && !self->unreplaced &&
        self->sighand->actions[self->fault.number].handler <= (uint64_t)SIG_IGN)
        self->pc = hooked->shown;
}

static void perform_replaced(uint64_t pc) {
    const struct hooked_function *hooked = function_find(pc);
    if (!hooked)
        fatal("internal error: no replacement at 0x%lx", pc);
    self->pc = hooked->shown;
    hooked->function(hooked->argument);
    TOOL_HOOK(register_set, RAX);
    if (!self->fault.number && !self->unreplaced)
        return_to_caller();
    else
        replacement_raised(pc);
}

// A call that a tool has inserted; afterwards the block goes on. What has become pending meanwhile
// waits for the next instruction: going back to this one would make the call twice.
static uint32_t perform_call(const struct link *link) {
    self->pc = link->target;
    self->where = IN_CALL;
    link->call->function(link->call->argument);
    self->where = IN_CODE;
    self->entry = link->stub;
    if (self->pending) {
        self->stepping = true;
        self->flags |= FLAG_TRAP;
    }
    return cache_resume();
}

// Into the cache and through the calls that tools have inserted.
static uint32_t enter(void) {
    self->exit_version = 0;
    self->where = IN_CODE;
    uint32_t reason = cache_enter();
    while (reason == EXIT_LINK && link_get(self->exit_link)->kind == EXIT_CALL)
        reason = perform_call(link_get(self->exit_link));
    self->where = IN_ENGINE;
    return reason;
}

// A write to a watched page is the engine's own business.
static void look_at_fault(void) {
    struct queued_signal *fault = &self->fault;
    if (fault->number == SIGSEGV && fault->trap == TRAP_PAGE_FAULT && fault->error & ERROR_WRITE &&
        memory_write_fault(fault->fault_address)) {
        fault->number = 0;
        if (!self->queued.number)
            __atomic_and_fetch(&self->pending, ~PENDING_SIGNAL, __ATOMIC_SEQ_CST);
        signal_restore_mask();
        return;
    }
    if (fault->number == SIGSEGV && fault->info.si_code == SEGV_ACCERR &&
        !memory_is_targets(fault->fault_address))
        fault->info.si_code = SEGV_MAPERR; // the engine keeps others out of there
    bool is_fetch = self->wild ||
                    (fault->trap == TRAP_PAGE_FAULT && (fault->error & ERROR_FETCH) == ERROR_FETCH);
    translate_show_fault(fault->number, fault->info.si_code,
                         self->wild ? self->jump_target : fault->fault_address, is_fetch);
    self->wild = false;
}

static void handle_pending(void) {
    if (self->pending & PENDING_STOP) {
        task_become_idle();
        task_become_busy();
    }
    if (self->pending & PENDING_DEBUG)
        debug_pending();
    if (self->fault.number)
        look_at_fault();
    if (self->pending & PENDING_SIGNAL) {
        debug_signal();
        signal_deliver_pending();
    }
}

// What the exit asks for. True if it may be linked to the block at the new pc.
static bool handle_exit(const struct link *link) {
    self->pc = link->target;
    switch ((enum exit_kind)link->kind) {
    case EXIT_TO:
        return true;
    case EXIT_SYSCALL:
        task_become_idle();
        sys_handle();
        task_become_busy();
        return false;
    case EXIT_EMULATE:
        emulate_instruction();
        return false;
    case EXIT_REQUEST:
        client_request();
        return false;
    case EXIT_MODIFIED:
        modified(self->pc, link->version);
        return false;
    case EXIT_BREAKPOINT:
        signal_raise(SIGTRAP, SI_KERNEL, 0, TRAP_BREAKPOINT, 0);
        return false;
    case EXIT_DEBUG:
        debug_breakpoint();
        return false;
    case EXIT_SWITCH: // wanted_set is set
        return false;
    case EXIT_RAISED:
        replacement_raised(self->pc);
        return false;
    case EXIT_REPLACED:
        perform_replaced(self->pc);
        return false;
    case EXIT_CALL: // done by enter
        return false;
    }
    return false;
}

// Makes the way just taken shorter, unless the cache was flushed in between.
static void connect(struct link *link, bool indirect, struct block *block, uint32_t epoch) {
    if (!link && !indirect)
        return;
    if (indirect && !block->version && table_piece_place(block->pc) && !table_has_piece(block->pc))
        translate_add_table_piece(block->pc);
    cache_lock();
    if (epoch == cache_epoch && !block->dead) {
        if (link)
            block_link(link, block);
        if (indirect)
            block_enter_in_table(block);
    }
    cache_unlock();
}

// One instruction at pc, whose block is not kept. False: none was run.
static bool run_one(unsigned version, bool *pushes_flags) {
    memory_read_lock();
    cache_lock();
    int fault = memory_fetch_code(self->pc, &code);
    struct block *block = fault ? NULL : translate_single(&code, version, self->unredirected);
    *pushes_flags = block && code.bytes[block->guest_size - 1] == OPCODE_PUSHF;
    cache_unlock();
    memory_unlock();
    if (fault)
        get_block(self->pc, version); // raises it
    else if (!block)
        translate_start_over(LOOKUP_TABLE);
    if (!block)
        return false;
    self->unredirected = self->unreplaced = self->forced = false;
    self->wanted_set = 0;
    self->entry = cache_start + block->code + block->direct_entry;
    return true;
}

// Goes on where the exit leads. False: a fault, or nothing was run.
static bool follow_exit(uint32_t reason) {
    if (reason == EXIT_LINK) {
        const struct link *link = link_get(self->exit_link);
        self->forced = link->kind == EXIT_TO && version_get(link->version).forced;
        handle_exit(link);
    } else if (reason == EXIT_INDIRECT) {
        self->pc = self->jump_target;
    }
    return reason == EXIT_LINK || reason == EXIT_INDIRECT;
}

// The target has set the trap flag: one instruction, then a trap.
static void run_single(void) {
    bool pushes_flags;
    if (!run_one(version_of_thread(true), &pushes_flags))
        return;
    uint32_t reason = enter();
    if (reason == EXIT_LINK && pushes_flags)
        *(uint16_t *)self->gpr[RSP] |= FLAG_TRAP; // just written
    if (follow_exit(reason) && !self->fault.number && !self->forced)
        signal_raise(SIGTRAP, TRAP_TRACE, self->pc, TRAP_DEBUG, 0);
}

// gdb steps, or the thread goes on past a breakpoint.
static void run_step(void) {
    bool unused;
    if (run_one(version_of_thread(true), &unused) && follow_exit(enter()) && !self->fault.number &&
        !self->forced)
        debug_stepped();
}

// A wrapper calls what it wraps, or a tool leaves it to the function itself: its first instruction
// is run alone, past the redirection.
static void run_unredirected(void) {
    bool unused;
    if (run_one(version_of_thread(true), &unused))
        follow_exit(enter());
}

#define NOWHERE (1ul << 63) // no pc is that

void run_until(uint64_t end) {
    struct link *link = NULL;
    bool indirect = false;
    uint32_t epoch = 0;
    while (self->pc != end) {
        if (self->pending) {
            handle_pending();
            link = NULL;
            indirect = false;
            continue;
        }
        if (self->trap_flag || self->unredirected || self->unreplaced || self->debug.step) {
            if (self->trap_flag)
                run_single();
            else if (self->debug.step)
                run_step();
            else
                run_unredirected();
            link = NULL;
            indirect = false;
            continue;
        }
        unsigned version = link       ? link->version
                           : indirect ? self->exit_version
                                      : version_of_thread(false);
        struct block *block = get_block(self->pc, version);
        if (!block) {
            link = NULL; // may be stale
            indirect = false;
            continue;
        }
        self->forced = false;
        self->wanted_set = 0;
        connect(link, indirect, block, epoch);
        link = NULL;
        indirect = false;
        epoch = cache_epoch;
        self->entry = cache_start + block->code + block->direct_entry;
        switch (enter()) {
        case EXIT_LINK:
            link = link_get(self->exit_link);
            if (!handle_exit(link))
                link = NULL;
            break;
        case EXIT_INDIRECT:
            self->pc = self->jump_target;
            indirect = true;
            if (!is_canonical(self->pc)) {
                // Only where a branch tells destinations apart: it has been noted.
                self->pc = link_get(self->exit_link)->target;
                emulate_wild_branch(true);
            }
            break;
        case EXIT_WILD:
            emulate_wild_branch(false);
            break;
        default:
            break;
        }
    }
}

void run_task(void) {
    task_become_busy();
    run_until(NOWHERE);
    __builtin_unreachable();
}
