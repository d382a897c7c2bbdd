#include "recorder/code.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    JUMP_SIZE = 5,
    NEAR = 1 << 30, // bytes: well within the reach of a relative jump
    STEP = 1 << 20,
    SHORT_REACH = 128,
    LONGEST = 15,
};

// ---- one instruction ---------------------------------------------------------------------------

enum flow { FLOW_NEXT, FLOW_SHORT, FLOW_SHORT_IF, FLOW_LONG, FLOW_LONG_IF, FLOW_CALL, FLOW_END };

struct insn {
    size_t size;
    size_t relative; // where its 4 bytes relative to rip are; 0: none
    enum flow flow;
};

// Size of ModRM, SIB and displacement; notes an operand relative to rip.
static size_t operand_size(const uint8_t *modrm, size_t at, struct insn *insn) {
    unsigned mod = *modrm >> 6, rm = *modrm & 7;
    if (mod == 3)
        return 1;
    if (mod == 0 && rm == 5) {
        insn->relative = at + 1;
        return 5;
    }
    size_t size = rm == 4 ? 2 : 1;
    if (mod == 0 && rm == 4 && (modrm[1] & 7) == 5)
        return size + 4;
    return size + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

// Opcodes after 0f that have an operand and nothing behind it.
static bool has_plain_operand(uint8_t opcode) {
    return opcode == 0x10 || opcode == 0x11 || opcode == 0x16 || opcode == 0x18 || opcode == 0x1e ||
           opcode == 0x1f || opcode == 0x28 || opcode == 0x29 || (opcode & 0xf0) == 0x40 ||
           opcode == 0x57 || opcode == 0x6c || opcode == 0x6e || opcode == 0x6f || opcode == 0x7e ||
           opcode == 0x7f || (opcode & 0xf0) == 0x90 || opcode == 0xa3 || opcode == 0xaf ||
           opcode == 0xb0 || opcode == 0xb1 || (opcode >= 0xb6 && opcode <= 0xb7) ||
           (opcode >= 0xbc && opcode <= 0xbf) || opcode == 0xc0 || opcode == 0xc1 ||
           opcode == 0xd6 || opcode == 0xef;
}

static bool decode_long(const uint8_t *code, size_t at, struct insn *insn) {
    uint8_t opcode = code[at++];
    if ((opcode & 0xf0) == 0x80) {
        insn->flow = FLOW_LONG_IF;
        insn->relative = at;
        insn->size = at + 4;
        return true;
    }
    bool has_byte = opcode == 0xba || opcode == 0x70;
    if (!has_byte && !has_plain_operand(opcode))
        return false;
    insn->size = at + operand_size(code + at, at, insn) + has_byte;
    return true;
}

// Opcodes without operand: bytes of their constant, or -1.
static int constant_size(uint8_t opcode, bool is_wide, unsigned full) {
    if (opcode < 0x40 && (opcode & 7) == 4)
        return 1;
    if (opcode < 0x40 && (opcode & 7) == 5)
        return (int)full;
    if ((opcode >= 0x50 && opcode <= 0x5f) || opcode == 0x90 || opcode == 0x98 || opcode == 0x99)
        return 0;
    if (opcode == 0x6a || opcode == 0xa8 || (opcode >= 0xb0 && opcode <= 0xb7))
        return 1;
    if (opcode == 0x68 || opcode == 0xa9)
        return (int)full;
    if (opcode >= 0xb8 && opcode <= 0xbf)
        return is_wide ? 8 : (int)full;
    return -1;
}

// Opcodes with operand: bytes of the constant behind it, or -1.
static int constant_behind(uint8_t opcode, uint8_t modrm, unsigned full) {
    unsigned number = modrm >> 3 & 7;
    if (opcode < 0x40 && (opcode & 7) < 4)
        return 0;
    if (opcode == 0x63 || (opcode >= 0x84 && opcode <= 0x8b) || opcode == 0x8d ||
        (opcode >= 0xd0 && opcode <= 0xd3))
        return 0;
    if (opcode == 0x6b || opcode == 0x80 || opcode == 0x83 || opcode == 0xc0 || opcode == 0xc1 ||
        opcode == 0xc6)
        return 1;
    if (opcode == 0x69 || opcode == 0x81 || opcode == 0xc7)
        return (int)full;
    if (opcode == 0xf6)
        return number < 2 ? 1 : 0;
    if (opcode == 0xf7)
        return number < 2 ? (int)full : 0;
    if (opcode == 0xfe || opcode == 0xff)
        return number < 2 || number == 4 || number == 6 ? 0 : -1; // no calls
    return -1;
}

static bool decode_jump(const uint8_t *code, size_t at, struct insn *insn) {
    uint8_t opcode = code[at++];
    bool is_short = opcode == 0xeb || (opcode & 0xf0) == 0x70;
    if (!is_short && opcode != 0xe8 && opcode != 0xe9)
        return false;
    insn->flow = opcode == 0xeb   ? FLOW_SHORT
                 : opcode == 0xe8 ? FLOW_CALL
                 : is_short       ? FLOW_SHORT_IF
                                  : FLOW_LONG;
    insn->relative = at;
    insn->size = at + (is_short ? 1 : 4);
    return true;
}

static bool decode(const uint8_t *code, struct insn *insn) {
    size_t at = 0;
    unsigned full = 4;
    bool is_wide = false;
    *insn = (struct insn){.flow = FLOW_NEXT};
    for (;; at++) {
        if (code[at] == 0x66)
            full = 2;
        else if (code[at] != 0x64 && code[at] != 0x65 && code[at] != 0x2e && code[at] != 0x3e &&
                 code[at] != 0xf2 && code[at] != 0xf3)
            break;
        if (at == 4)
            return false;
    }
    if ((code[at] & 0xf0) == 0x40)
        is_wide = code[at++] & 8;
    if (decode_jump(code, at, insn))
        return true;
    if (code[at] == 0xc3 || code[at] == 0xcc) {
        insn->flow = FLOW_END;
        insn->size = at + 1;
        return true;
    }
    if (code[at] == 0x0f)
        return decode_long(code, at + 1, insn);
    int constant = constant_size(code[at], is_wide, full);
    if (constant >= 0) {
        insn->size = at + 1 + (size_t)constant;
        return true;
    }
    constant = constant_behind(code[at], code[at + 1], full);
    if (constant < 0)
        return false;
    insn->size = at + 1 + operand_size(code + at + 1, at + 1, insn) + (size_t)constant;
    if (code[at] == 0xff && (code[at + 1] >> 3 & 7) == 4)
        insn->flow = FLOW_END;
    return true;
}

static int64_t target_of(const uint8_t *code, const struct insn *insn) {
    int32_t offset;
    if (insn->flow == FLOW_SHORT || insn->flow == FLOW_SHORT_IF)
        return (int64_t)code + (int64_t)insn->size + (int8_t)code[insn->relative];
    memcpy(&offset, code + insn->relative, sizeof offset);
    return (int64_t)code + (int64_t)insn->size + offset;
}

// ---- copies ------------------------------------------------------------------------------------

static bool put_relative(uint8_t *at, int64_t target) {
    int64_t offset = target - ((int64_t)at + 4);
    int32_t narrow = (int32_t)offset;
    memcpy(at, &narrow, sizeof narrow);
    return narrow == offset;
}

// A call that returns to the function itself, so that stacks can be walked.
static size_t copy_call(uint8_t *to, uint64_t target, uint64_t back) {
    static const uint8_t code[] = {
        0xff, 0x35, 6, 0, 0, 0, // push back
        0xff, 0x25, 8, 0, 0, 0, // jmp *target
    };
    memcpy(to, code, sizeof code);
    memcpy(to + sizeof code, &back, sizeof back);
    memcpy(to + sizeof code + sizeof back, &target, sizeof target);
    return sizeof code + sizeof back + sizeof target;
}

// Copies an instruction; jumps become long ones. Returns its new size; 0: out of reach.
static size_t copy_insn(uint8_t *to, const uint8_t *code, const struct insn *insn) {
    bool is_reached = true;
    size_t size = insn->size;
    if (insn->flow == FLOW_CALL)
        return copy_call(to, (uint64_t)target_of(code, insn), (uint64_t)code + size);
    if (insn->flow == FLOW_SHORT || insn->flow == FLOW_LONG) {
        to[0] = 0xe9;
        is_reached = put_relative(to + 1, target_of(code, insn));
        size = 5;
    } else if (insn->flow == FLOW_SHORT_IF) {
        to[0] = 0x0f;
        to[1] = 0x80 | (code[insn->relative - 1] & 0x0f);
        is_reached = put_relative(to + 2, target_of(code, insn));
        size = 6;
    } else {
        memcpy(to, code, size);
        if (insn->relative) {
            // What follows the offset counts as well.
            int64_t behind = (int64_t)(size - insn->relative - 4);
            is_reached = put_relative(to + insn->relative, target_of(code, insn) - behind);
        }
    }
    return is_reached ? size : 0;
}

// Whether a jump of the function leads among the instructions [from, to) behind the first. Looks at
// what can be decoded: short jumps are near.
static bool is_jumped_into(const uint8_t *function, size_t size, const uint8_t *from,
                           const uint8_t *to) {
    size_t reach = (size_t)(to - function) + SHORT_REACH + LONGEST;
    struct insn insn;
    for (const uint8_t *at = function; at < function + (size && size < reach ? size : reach);
         at += insn.size) {
        if (!decode(at, &insn))
            break;
        if (insn.flow == FLOW_NEXT || insn.flow == FLOW_CALL || insn.flow == FLOW_END)
            continue;
        int64_t target = target_of(at, &insn);
        if (target > (int64_t)from && target < (int64_t)to)
            return true;
    }
    // Long jumps by their bytes, wherever they are.
    for (size_t i = 0; i + 5 < size; i++) {
        int32_t offset;
        memcpy(&offset, function + i + 1, sizeof offset);
        int64_t target = (int64_t)function + (int64_t)i + 5 + offset;
        bool is_jump =
            function[i] == 0xe9 || (i && function[i - 1] == 0x0f && (function[i] & 0xf0) == 0x80);
        if (is_jump && target > (int64_t)from && target < (int64_t)to)
            return true;
    }
    return false;
}

static uint8_t *put_far_jump(uint8_t *at, const void *target) {
    static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0}; // jmp *(%rip)
    memcpy(at, jump, sizeof jump);
    memcpy(at + sizeof jump, &target, sizeof target);
    return at + sizeof jump + sizeof target;
}

// The hook's entry: its sixth argument is the context.
static uint8_t *put_entry(uint8_t *at, const void *hook, const void *context) {
    *at++ = 0x49; // mov $context, %r9
    *at++ = 0xb9;
    memcpy(at, &context, sizeof context);
    return put_far_jump(at + sizeof context, hook);
}

bool code_prepare(struct code_divert *divert, uint8_t *room, void *hook, const void *context) {
    static const uint8_t mark[] = {0xf3, 0x0f, 0x1e, 0xfa}; // endbr64: stays where it is
    const uint8_t *from = divert->function;
    uint8_t *to = put_entry(room, hook, context);
    if (memcmp(from, mark, sizeof mark) == 0)
        from += sizeof mark;
    divert->at = (uint8_t *)from;
    divert->original = to;
    const uint8_t *end = from;
    bool is_over = false;
    while (end < from + JUMP_SIZE) {
        struct insn insn;
        if (is_over || !decode(end, &insn) ||
            (divert->size && end + insn.size > divert->function + divert->size))
            return false;
        size_t size = copy_insn(to, end, &insn);
        if (!size || to + size + LONGEST > room + CODE_ROOM)
            return false;
        to += size;
        end += insn.size;
        is_over = insn.flow == FLOW_SHORT || insn.flow == FLOW_LONG || insn.flow == FLOW_CALL ||
                  insn.flow == FLOW_END;
    }
    if (is_jumped_into(divert->function, divert->size, from, end))
        return false;
    // Whoever writes the jump from outside writes it in one piece.
    if ((uint64_t)from / 4096 != ((uint64_t)from + JUMP_SIZE - 1) / 4096)
        return false;
    put_far_jump(to, end);
    divert->replaced = (uint8_t)(end - from);
    divert->jump[0] = 0xe9;
    int64_t offset = (int64_t)room - ((int64_t)from + JUMP_SIZE);
    int32_t narrow = (int32_t)offset;
    memcpy(divert->jump + 1, &narrow, sizeof narrow);
    return narrow == offset;
}

// ---- memory ------------------------------------------------------------------------------------

static uint8_t *try_map(uint64_t address, size_t size) {
    long memory = syscall(SYS_mmap, address, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory == -1)
        return NULL;
    if ((uint64_t)memory == address)
        return (uint8_t *)memory;
    syscall(SYS_munmap, memory, size); // a kernel that does not know the flag
    return NULL;
}

uint8_t *code_map_near(uint64_t start, uint64_t end, size_t size) {
    uint64_t low = start & ~(uint64_t)(STEP - 1), high = (end + STEP - 1) & ~(uint64_t)(STEP - 1);
    uint8_t *memory = NULL;
    for (uint64_t away = STEP; away < NEAR && !memory; away += STEP) {
        if (low > away + STEP)
            memory = try_map(low - away, size);
        if (!memory)
            memory = try_map(high + away, size);
    }
    return memory;
}

static bool protect(void *address, size_t size, int protection) {
    uint64_t start = (uint64_t)address & ~4095ul;
    uint64_t end = ((uint64_t)address + size + 4095) & ~4095ul;
    return syscall(SYS_mprotect, start, end - start, protection) == 0;
}

bool code_seal(uint8_t *room, size_t size) {
    return protect(room, size, PROT_READ | PROT_EXEC);
}

bool code_divert(const struct code_divert *divert) {
    // Executable all the time: this very code may be on the same page in no case, others' may.
    if (!protect(divert->at, JUMP_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC))
        return false;
    memcpy(divert->at, divert->jump, JUMP_SIZE);
    return protect(divert->at, JUMP_SIZE, PROT_READ | PROT_EXEC);
}
