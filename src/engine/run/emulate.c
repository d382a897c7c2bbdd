// Instructions that are done in C: rare ones that concern segments, and far transfers.
#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/layout.h"
#include "engine/memory/memory.h"
#include "engine/memory/target.h"
#include "engine/run/run.h"
#include "engine/signal/signal.h"
#include "engine/translate/builder.h"

enum {
    TRAP_OVERFLOW = 4,
    TRAP_INVALID = 6,
    TRAP_STACK = 12,
    TRAP_PROTECTION = 13,
    TRAP_PAGE_FAULT = 14
};
enum { ERROR_FETCH = 0x14, USER_CODE = 0x33, USER_DATA = 0x2b };
enum {
    USER_FLAGS = 0x244dd5, // what iret and popf may change in user mode
};

static void protection_fault(void) {
    signal_raise(SIGSEGV, SI_KERNEL, 0, TRAP_PROTECTION, 0);
}

// An access from this address on has failed: the target gets the processor's own account of it.
static void memory_fault(uint64_t address, bool stack) {
    const struct queued_signal *fault = &self->guarded_fault;
    if (!is_canonical(address) && stack)
        signal_raise(SIGBUS, SI_KERNEL, 0, TRAP_STACK, 0);
    else if (!is_canonical(address))
        protection_fault();
    else
        signal_raise(fault->number, fault->info.si_code, (uint64_t)fault->info.si_addr, fault->trap,
                     fault->error);
}

static void invalid_opcode(void) {
    signal_raise(SIGILL, ILL_ILLOPN, self->pc, TRAP_INVALID, 0);
}

void raise_fetch_fault(uint64_t address, int code) {
    // The error code says whether the page is in memory: the processor looks at nothing else.
    unsigned char is_present = 0;
    if (code == SEGV_ACCERR)
        syscall(SYS_mincore, address & ~4095ul, 4096, &is_present);
    signal_raise(SIGSEGV, code, address, TRAP_PAGE_FAULT, ERROR_FETCH | (is_present & 1));
}

// The instruction continues where there is no code.
static void fetch_fault(uint64_t address) {
    struct space_range range;
    memory_read_lock();
    bool mapped = space_find(&target_space, address, &range) && range.start <= address;
    memory_unlock();
    raise_fetch_fault(address, mapped ? SEGV_ACCERR : SEGV_MAPERR);
}

static uint64_t operand_address(struct insn *insn, const ZydisDecodedOperand *operand) {
    uint64_t address = operand->mem.disp.value;
    int base = register_number(operand->mem.base), index = register_number(operand->mem.index);
    if (operand->mem.base == ZYDIS_REGISTER_RIP || operand->mem.base == ZYDIS_REGISTER_EIP)
        address += insn_next(insn);
    else if (base >= 0)
        address += self->gpr[base];
    if (index >= 0)
        address += self->gpr[index] * operand->mem.scale;
    if (insn->z.address_width == 32)
        address = (uint32_t)address;
    if (operand->mem.segment == ZYDIS_REGISTER_FS)
        address += self->fs_base;
    if (operand->mem.segment == ZYDIS_REGISTER_GS)
        address += self->gs_base;
    return address;
}

static bool is_stack_operand(const ZydisDecodedOperand *operand) {
    return operand->mem.segment == ZYDIS_REGISTER_SS;
}

// Reads up to 16 bytes of a source operand; false after raising a fault.
static bool read_operand(struct insn *insn, const ZydisDecodedOperand *operand, void *value,
                         unsigned size) {
    if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
        *(uint64_t *)value = self->gpr[register_number(operand->reg.value)];
        return true;
    }
    uint64_t address = operand_address(insn, operand);
    if (target_read(value, address, size) == 0)
        return true;
    memory_fault(address, is_stack_operand(operand));
    return false;
}

static void write_register(unsigned reg, uint64_t value, unsigned width) {
    if (width == 64)
        self->gpr[reg] = value;
    else if (width == 32)
        self->gpr[reg] = (uint32_t)value;
    else
        self->gpr[reg] = (self->gpr[reg] & ~0xfffful) | (value & 0xffff);
}

static void base_instruction(struct insn *insn) {
    uint64_t *base =
        insn->z.mnemonic == ZYDIS_MNEMONIC_RDFSBASE || insn->z.mnemonic == ZYDIS_MNEMONIC_WRFSBASE
            ? &self->fs_base
            : &self->gs_base;
    unsigned reg = register_number(insn->operands[0].reg.value);
    bool wide = insn->z.operand_width == 64;
    if (insn->z.mnemonic == ZYDIS_MNEMONIC_RDFSBASE ||
        insn->z.mnemonic == ZYDIS_MNEMONIC_RDGSBASE) {
        write_register(reg, *base, wide ? 64 : 32);
    } else {
        uint64_t value = wide ? self->gpr[reg] : (uint32_t)self->gpr[reg];
        if (!is_canonical(value)) {
            protection_fault();
            return;
        }
        *base = value;
    }
    self->pc = insn_next(insn);
}

// ---- selectors ---------------------------------------------------------------------------------

static void selector_fault(uint16_t selector) {
    signal_raise(SIGSEGV, SI_KERNEL, 0, TRAP_PROTECTION, selector & ~3);
}

// The user segments that Linux has: 32-bit code, data, 64-bit code, and the one with the CPU
// number.
static bool is_user_segment(uint16_t selector) {
    uint16_t entry = selector & ~3;
    return entry == 0x20 || entry == 0x28 || entry == 0x30 || entry == 0x78;
}

static bool load_selector(ZydisRegister segment, uint16_t selector) {
    if (selector & ~3 && !is_user_segment(selector)) {
        selector_fault(selector);
        return false;
    }
    if (segment == ZYDIS_REGISTER_FS) {
        self->fs_selector = selector;
        self->fs_base = 0;
    } else {
        self->gs_selector = selector;
        self->gs_base = 0;
    }
    return true;
}

static uint16_t selector_of(ZydisRegister segment) {
    return segment == ZYDIS_REGISTER_FS ? self->fs_selector : self->gs_selector;
}

static bool is_segment(const ZydisDecodedOperand *operand) {
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
           (operand->reg.value == ZYDIS_REGISTER_FS || operand->reg.value == ZYDIS_REGISTER_GS);
}

static bool is_writable(uint64_t address) {
    uint8_t byte = 0;
    target_read(&byte, address, 1);
    return target_write(address, &byte, 1) == 0;
}

// A store that reaches into a page that faults stores nothing.
static bool write_whole(uint64_t address, const void *value, unsigned size, bool stack) {
    uint64_t last = (address + size - 1) & ~4095ul;
    bool crosses = address < last;
    if ((!crosses || (is_writable(address) && is_writable(last))) &&
        target_write(address, value, size) == 0)
        return true;
    memory_fault(address, stack);
    return false;
}

static bool push_bytes(uint64_t address, const void *value, unsigned size) {
    return write_whole(address, value, size, true);
}

static bool write_operand(struct insn *insn, const ZydisDecodedOperand *operand, const void *value,
                          unsigned size) {
    return write_whole(operand_address(insn, operand), value, size, is_stack_operand(operand));
}

static void move_selector(struct insn *insn) {
    const ZydisDecodedOperand *to = &insn->operands[0], *from = &insn->operands[1];
    uint64_t value = 0;
    if (is_segment(to)) {
        if (!read_operand(insn, from, &value, 2) || !load_selector(to->reg.value, value))
            return;
    } else {
        value = selector_of(from->reg.value);
        if (to->type == ZYDIS_OPERAND_TYPE_REGISTER)
            write_register(register_number(to->reg.value), value, insn->z.operand_width);
        else if (!write_operand(insn, to, &value, 2))
            return;
    }
    self->pc = insn_next(insn);
}

static void pop_selector(struct insn *insn) {
    uint64_t value = 0;
    unsigned width = insn->z.operand_width == 16 ? 2 : 8;
    if (target_read(&value, self->gpr[RSP], width)) {
        memory_fault(self->gpr[RSP], true);
        return;
    }
    if (!load_selector(insn->operands[0].reg.value, value))
        return;
    self->gpr[RSP] += width;
    self->pc = insn_next(insn);
}

static void push_selector(struct insn *insn) {
    uint64_t value = selector_of(insn->operands[0].reg.value);
    unsigned width = insn->z.operand_width == 16 ? 2 : 8;
    if (!push_bytes(self->gpr[RSP] - width, &value, width))
        return;
    self->gpr[RSP] -= width;
    self->pc = insn_next(insn);
}

// Far pointers with 64-bit offsets exist on Intel's processors only; on others REX.W means nothing.
static unsigned far_operand_width(const struct insn *insn) {
    static int has_wide = -1;
    if (has_wide < 0) {
        unsigned a, b, c, d;
        __cpuid(0, a, b, c, d);
        has_wide = b == signature_INTEL_ebx;
    }
    return insn->z.operand_width == 64 && !has_wide ? 32 : insn->z.operand_width;
}

// lfs, lgs: offset into a register, selector into a segment register.
static void load_far_pointer(struct insn *insn, ZydisRegister segment) {
    struct {
        uint64_t low, high;
    } value = {0};
    unsigned width = far_operand_width(insn);
    if (!read_operand(insn, &insn->operands[1], &value, width / 8 + 2))
        return;
    uint16_t selector = width == 64 ? value.high : value.low >> width;
    uint64_t offset = width == 64 ? value.low : value.low & ((1ull << width) - 1);
    if (!load_selector(segment, selector))
        return;
    write_register(register_number(insn->operands[0].reg.value), offset, width);
    self->pc = insn_next(insn);
}

// ---- far transfers -----------------------------------------------------------------------------

static void set_flags(uint64_t flags, uint64_t mask) {
    self->flags = (self->flags & ~(mask | FLAG_RESUME)) | (flags & mask);
    self->trap_flag = self->flags & FLAG_TRAP;
    self->flags &= ~(uint64_t)FLAG_TRAP;
}

// Only to the segment that 64-bit code is in.
static bool is_code_selector(uint16_t selector) {
    if (selector == USER_CODE)
        return true;
    selector_fault(selector);
    return false;
}

static void far_return(struct insn *insn) {
    bool interrupt = insn->z.mnemonic != ZYDIS_MNEMONIC_RET;
    unsigned size = insn->z.operand_width / 8;
    uint64_t words[5] = {0}, sp = self->gpr[RSP];
    for (unsigned i = 0; i < (interrupt ? 5 : 2); i++) {
        if (target_read(&words[i], sp + i * size, size)) {
            memory_fault(sp + i * size, true);
            return;
        }
    }
    if (!is_code_selector(words[1]))
        return;
    if (!is_canonical(words[0])) {
        protection_fault();
        return;
    }
    if (interrupt && (uint16_t)words[4] != USER_DATA) {
        selector_fault(words[4]);
        return;
    }
    self->pc = words[0];
    self->gpr[RSP] = sp + 2 * size + insn->z.raw.imm[0].value.u;
    if (interrupt) {
        set_flags(words[2], size == 2 ? USER_FLAGS & 0xffff : USER_FLAGS);
        self->gpr[RSP] = words[3];
    }
}

static void far_branch(struct insn *insn, bool is_call) {
    uint8_t pointer[10];
    uint64_t offset = 0;
    uint16_t selector;
    unsigned size = far_operand_width(insn) / 8;
    if (insn->operands[0].type != ZYDIS_OPERAND_TYPE_MEMORY) {
        invalid_opcode();
        return;
    }
    if (!read_operand(insn, &insn->operands[0], pointer, size + 2))
        return;
    memcpy(&offset, pointer, size);
    memcpy(&selector, pointer + size, 2);
    if (!is_code_selector(selector))
        return;
    if (!is_canonical(offset)) {
        protection_fault();
        return;
    }
    if (is_call) {
        uint64_t words[2] = {insn_next(insn), USER_CODE};
        uint64_t sp = self->gpr[RSP] - 2 * size;
        if (!push_bytes(sp + size, &words[1], size) || !push_bytes(sp, &words[0], size))
            return;
        self->gpr[RSP] = sp;
    }
    self->pc = offset;
}

static void pop_flags(struct insn *insn) {
    uint64_t value = 0;
    unsigned size = insn->z.operand_width / 8;
    if (target_read(&value, self->gpr[RSP], size)) {
        memory_fault(self->gpr[RSP], true);
        return;
    }
    set_flags(value, size == 2 ? USER_FLAGS & 0xffff : USER_FLAGS);
    self->gpr[RSP] += size;
    self->pc = insn_next(insn);
}

// A transaction that always aborts at once: the fallback path that every user has.
static void begin_transaction(struct insn *insn) {
    unsigned a, b, c, d;
    __cpuid_count(7, 0, a, b, c, d);
    if (!(b & 1u << 11)) {
        invalid_opcode();
        return;
    }
    self->gpr[RAX] = 0;
    self->pc = insn_next(insn) + insn->z.raw.imm[0].value.s;
}

// Decodes the instruction at pc; raises what the processor does if that is impossible.
static bool decode_here(struct insn *insn, struct code_bytes *code) {
    memory_read_lock();
    cache_lock();
    int fault = memory_fetch_code(self->pc, code);
    cache_unlock();
    memory_unlock();
    if (fault)
        return false; // gone meanwhile: the dispatcher finds out
    unsigned size = code->size < INSN_BYTES ? code->size : INSN_BYTES;
    switch (insn_decode(insn, self->pc, code->bytes, size)) {
    case INSN_VALID:
        insn_operands(insn);
        return true;
    case INSN_CUT_OFF:
        fetch_fault(self->pc + code->size);
        return false;
    case INSN_TOO_LONG:
        protection_fault();
        return false;
    default:
        invalid_opcode();
        return false;
    }
}

void emulate_instruction(void) {
    struct insn insn;
    struct code_bytes code;
    if (!decode_here(&insn, &code))
        return;
    switch (insn.z.mnemonic) {
    case ZYDIS_MNEMONIC_RDFSBASE:
    case ZYDIS_MNEMONIC_RDGSBASE:
    case ZYDIS_MNEMONIC_WRFSBASE:
    case ZYDIS_MNEMONIC_WRGSBASE:
        base_instruction(&insn);
        break;
    case ZYDIS_MNEMONIC_MOV:
        move_selector(&insn);
        break;
    case ZYDIS_MNEMONIC_POP:
        pop_selector(&insn);
        break;
    case ZYDIS_MNEMONIC_PUSH:
        push_selector(&insn);
        break;
    case ZYDIS_MNEMONIC_INT: // 4: overflow, a trap
        self->pc = insn_next(&insn);
        signal_raise(SIGSEGV, SI_KERNEL, 0, TRAP_OVERFLOW, 0);
        break;
    case ZYDIS_MNEMONIC_JMP:
    case ZYDIS_MNEMONIC_CALL:
        far_branch(&insn, insn.z.mnemonic == ZYDIS_MNEMONIC_CALL);
        break;
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
        pop_flags(&insn);
        break;
    case ZYDIS_MNEMONIC_LFS:
        load_far_pointer(&insn, ZYDIS_REGISTER_FS);
        break;
    case ZYDIS_MNEMONIC_LGS:
        load_far_pointer(&insn, ZYDIS_REGISTER_GS);
        break;
    case ZYDIS_MNEMONIC_XBEGIN:
        begin_transaction(&insn);
        break;
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
        far_return(&insn);
        break;
    case ZYDIS_MNEMONIC_SYSENTER:
        invalid_opcode();
        break;
    default: // system returns
        protection_fault();
    }
}

// A push at this address would succeed; raises the fault if not.
static bool can_push(uint64_t address) {
    uint64_t value = 0;
    target_read(&value, address, sizeof value);
    return push_bytes(address, &value, sizeof value);
}

void emulate_wild_branch(bool pushed) {
    struct insn insn;
    struct code_bytes code;
    if (!decode_here(&insn, &code))
        return;
    if (insn.z.mnemonic == ZYDIS_MNEMONIC_RET)
        self->gpr[RSP] -= 8 + insn.z.raw.imm[0].value.u;
    else if (insn.z.mnemonic == ZYDIS_MNEMONIC_CALL && pushed)
        self->gpr[RSP] += 8;
    else if (insn.z.mnemonic == ZYDIS_MNEMONIC_CALL && !can_push(self->gpr[RSP] - 8))
        return; // the push is tried first
    self->wild = true;
    protection_fault();
}
