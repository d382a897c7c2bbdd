#include "describe.h"

#include <string.h>

const char *const describe_group_names[GROUP_COUNT] = {
    [GROUP_GENERAL] = "general",
    [GROUP_STACK] = "stack",
    [GROUP_STRING] = "string",
    [GROUP_CONTROL] = "control",
    [GROUP_BRANCH16] = "branch16",
    [GROUP_WILD] = "wild",
    [GROUP_FETCH] = "fetch",
    [GROUP_FAR] = "far",
    [GROUP_SEGMENT] = "segment",
    [GROUP_SYSTEM] = "system",
    [GROUP_XSAVE] = "xsave",
    [GROUP_TRAP] = "trap-flag",
    [GROUP_ALIGNMENT] = "alignment-check",
    [GROUP_X87] = "x87",
    [GROUP_X87_POINTERS] = "x87-pointers",
    [GROUP_MMX] = "mmx",
    [GROUP_SSE] = "sse",
    [GROUP_VEX] = "vex",
    [GROUP_EVEX] = "evex",
    [GROUP_MASK] = "mask",
    [GROUP_XOP] = "xop-3dnow",
    [GROUP_UNDECODABLE] = "undecodable",
    [GROUP_SEQUENCE] = "sequences",
};

// Left out, and why.
static const char *skip_reason(const ZydisDecodedInstruction *instruction) {
    unsigned segments = 0;
    for (int i = 0; i < instruction->raw.prefix_count; i++)
        segments += instruction->raw.prefixes[i].value != 0 &&
                    memchr("\x26\x2e\x36\x3e\x64\x65", instruction->raw.prefixes[i].value, 6);
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_SGDT:
    case ZYDIS_MNEMONIC_SIDT:
    case ZYDIS_MNEMONIC_SLDT:
    case ZYDIS_MNEMONIC_SMSW:
    case ZYDIS_MNEMONIC_STR:
        return segments > 1 || instruction->raw.prefix_count > 2
                   ? "the kernel emulates it (UMIP) and stumbles over that many prefixes"
                   : NULL;
    case ZYDIS_MNEMONIC_VMCALL:
    case ZYDIS_MNEMONIC_VMMCALL:
        return "what it does is up to the hypervisor";
    case ZYDIS_MNEMONIC_SYSENTER:
        return __builtin_cpu_is("amd") ? NULL : "on Intel it returns to the 32-bit vdso";
    default:
        return NULL;
    }
}

static uint8_t gpr(ZydisRegister reg) {
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    return whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15 ? whole - ZYDIS_REGISTER_RAX
                                                                      : GPR_NONE;
}

static const char *ignore_outcome(struct form *form, const ZydisDecodedInstruction *instruction,
                                  const ZydisDecodedOperand *operands) {
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_RDTSC:
    case ZYDIS_MNEMONIC_RDTSCP:
    case ZYDIS_MNEMONIC_RDPRU:
        form->ignored_gprs = 1 << GPR_RAX | 1 << GPR_RDX;
        return "eax and edx are a clock";
    case ZYDIS_MNEMONIC_RDRAND:
    case ZYDIS_MNEMONIC_RDSEED:
        form->ignored_gprs = 1 << gpr(operands[0].reg.value);
        form->ignored_flags = ZYDIS_CPUFLAG_CF;
        return "the destination is random, CF its availability";
    case ZYDIS_MNEMONIC_TPAUSE:
    case ZYDIS_MNEMONIC_UMWAIT:
        form->ignored_flags = ZYDIS_CPUFLAG_CF;
        return "CF says whether the wait was cut short";
    default:
        return NULL;
    }
}

static enum group group_of(const ZydisDecodedInstruction *instruction) {
    switch (instruction->meta.category) {
    case ZYDIS_CATEGORY_PUSH:
    case ZYDIS_CATEGORY_POP:
        return GROUP_STACK;
    case ZYDIS_CATEGORY_STRINGOP:
    case ZYDIS_CATEGORY_IOSTRINGOP:
        return GROUP_STRING;
    case ZYDIS_CATEGORY_XSAVE:
    case ZYDIS_CATEGORY_XSAVEOPT:
        return GROUP_XSAVE;
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_SYSTEM:
    case ZYDIS_CATEGORY_IO:
        return GROUP_SYSTEM;
    case ZYDIS_CATEGORY_KMASK:
        return GROUP_MASK;
    default:
        break;
    }
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_LEAVE:
        return GROUP_STACK;
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
        return GROUP_XSAVE;
    case ZYDIS_MNEMONIC_FNSTENV:
    case ZYDIS_MNEMONIC_FNSAVE:
        return GROUP_X87_POINTERS;
    case ZYDIS_MNEMONIC_CPUID:
    case ZYDIS_MNEMONIC_XGETBV:
        return GROUP_SYSTEM;
    default:
        break;
    }
    if (instruction->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED)
        return GROUP_SYSTEM;
    switch (instruction->meta.isa_ext) {
    case ZYDIS_ISA_EXT_X87:
        return GROUP_X87;
    case ZYDIS_ISA_EXT_MMX:
        return GROUP_MMX;
    case ZYDIS_ISA_EXT_XOP:
    case ZYDIS_ISA_EXT_AMD3DNOW:
    case ZYDIS_ISA_EXT_TBM:
    case ZYDIS_ISA_EXT_FMA4:
        return GROUP_XOP;
    default:
        break;
    }
    if (instruction->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX)
        return GROUP_EVEX;
    if (instruction->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX)
        return GROUP_VEX;
    if (instruction->meta.exception_class != ZYDIS_EXCEPTION_CLASS_NONE)
        return GROUP_SSE;
    return GROUP_GENERAL;
}

// vgatherqps and its kin: the letter after the verb tells the index width.
static uint8_t vsib_bits(ZydisMnemonic mnemonic) {
    const char *name = ZydisMnemonicGetString(mnemonic);
    const char *verb = strstr(name, "gather");
    verb = verb ? verb + 6 : strstr(name, "scatter") + 7;
    if (!strncmp(verb, "pf", 2))
        verb += 3;
    return *verb == 'd' ? 32 : 64;
}

static uint8_t fill_of(const ZydisDecodedInstruction *instruction) {
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_LDMXCSR:
    case ZYDIS_MNEMONIC_VLDMXCSR:
        return FILL_MXCSR;
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
        return FILL_FXSAVE;
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
        return FILL_XSAVE;
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
        return FILL_FLAGS;
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
        return FILL_FRAME;
    case ZYDIS_MNEMONIC_LFS:
    case ZYDIS_MNEMONIC_LGS:
    case ZYDIS_MNEMONIC_LSS:
        return FILL_FAR;
    default:
        return FILL_VALUE;
    }
}

// Zydis gives no size to these images.
static uint16_t size_of(const ZydisDecodedInstruction *instruction,
                        const ZydisDecodedOperand *operand) {
    if (instruction->meta.category == ZYDIS_CATEGORY_XSAVE ||
        instruction->meta.category == ZYDIS_CATEGORY_XSAVEOPT)
        return 2816;
    return operand->size ? operand->size / 8 : 64;
}

static void describe_memory(struct description *d, const ZydisDecodedInstruction *instruction,
                            const ZydisDecodedOperand *operand) {
    if (d->form.mem_count == FORM_MEM_MAX)
        return;
    struct form_mem *mem = &d->form.mem[d->form.mem_count++];
    mem->disp = operand->mem.disp.has_displacement ? operand->mem.disp.value : 0;
    mem->size = size_of(instruction, operand);
    mem->scale = operand->mem.scale;
    mem->address32 = instruction->address_width == 32;
    mem->implicit = operand->visibility != ZYDIS_OPERAND_VISIBILITY_EXPLICIT;
    mem->fill = fill_of(instruction);
    mem->segment = operand->mem.segment == ZYDIS_REGISTER_FS   ? SEGMENT_FS
                   : operand->mem.segment == ZYDIS_REGISTER_GS ? SEGMENT_GS
                                                               : SEGMENT_NONE;
    mem->base = gpr(operand->mem.base);
    if (operand->mem.base == ZYDIS_REGISTER_RIP || operand->mem.base == ZYDIS_REGISTER_EIP)
        mem->base = GPR_RIP;
    mem->index = gpr(operand->mem.index);
    if (operand->mem.type == ZYDIS_MEMOP_TYPE_VSIB) {
        mem->index = ZydisRegisterGetId(operand->mem.index);
        mem->vsib_bits = vsib_bits(instruction->mnemonic);
    } else if (operand->mem.index == ZYDIS_REGISTER_AL) {
        mem->index = GPR_INNER;
    }
    if (mem->base == GPR_RSP && mem->implicit) {
        d->form.limits |= LIMIT_STACK;
        mem->address32 = 0;
    }
    if (mem->segment == SEGMENT_FS)
        d->form.limits |= LIMIT_FS_BASE;
    if (mem->segment == SEGMENT_GS)
        d->form.limits |= LIMIT_GS_BASE;
    bool at_stack = mem->base == GPR_RSP && mem->index == GPR_NONE && !mem->segment;
    bool fixed = (mem->base == GPR_NONE || mem->base == GPR_RIP) && mem->index == GPR_NONE;
    if (!(at_stack && !mem->address32) && !(fixed && !mem->implicit))
        d->composable = false;
}

static void describe_branch(struct description *d, const ZydisDecodedInstruction *instruction,
                            const ZydisDecodedOperand *operands) {
    ZydisInstructionCategory category = instruction->meta.category;
    struct form *form = &d->form;
    if (instruction->meta.branch_type == ZYDIS_BRANCH_TYPE_NONE && category != ZYDIS_CATEGORY_RET &&
        fill_of(instruction) != FILL_FRAME)
        return;
    d->group = GROUP_CONTROL;
    d->composable = false;
    form->states = 8;
    for (int i = 0; i < instruction->operand_count_visible; i++)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[i].imm.is_relative) {
            d->relative = true;
            form->limits |= LIMIT_COUNT;
            if (instruction->address_width == 32)
                form->limits |= LIMIT_COUNT32;
            return;
        }
    if (fill_of(instruction) == FILL_FRAME) {
        d->group = GROUP_FAR;
        form->special_bits = instruction->operand_width;
        return;
    }
    d->indirect = true;
    if (instruction->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) {
        d->group = GROUP_FAR;
        d->indirect = false;
        form->special_bits = instruction->operand_width;
        if (form->mem_count)
            form->mem[0].fill = FILL_FAR;
    } else if (operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER && category != ZYDIS_CATEGORY_RET) {
        form->limits |= LIMIT_POINTER;
        form->special = gpr(operands[0].reg.value);
    } else if (form->mem_count) {
        form->mem[0].fill = FILL_POINTER;
    }
}

static void describe_segment(struct description *d, const ZydisDecodedInstruction *instruction,
                             const ZydisDecodedOperand *operands) {
    struct form *form = &d->form;
    bool load = false;
    for (int i = 0; i < instruction->operand_count; i++)
        load |= operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                ZydisRegisterGetClass(operands[i].reg.value) == ZYDIS_REGCLASS_SEGMENT &&
                operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    if (!load || d->group == GROUP_CONTROL || d->group == GROUP_FAR || d->group == GROUP_SYSTEM)
        return;
    d->group = GROUP_SEGMENT;
    d->composable = false;
    form->states = 8;
    form->limits |= LIMIT_SEGMENT_LOAD | LIMIT_FS_BASE | LIMIT_GS_BASE;
    form->special_bits = instruction->operand_width;
    if (form->mem_count && fill_of(instruction) != FILL_FAR) {
        form->mem[0].fill = FILL_SELECTOR;
    } else if (!form->mem_count) {
        form->limits |= LIMIT_SELECTOR;
        form->special = gpr(operands[1].reg.value);
    }
}

static void describe_limits(struct description *d, const ZydisDecodedInstruction *instruction,
                            const ZydisDecodedOperand *operands) {
    struct form *form = &d->form;
    switch (instruction->mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
        form->limits |= LIMIT_SYSCALL;
        break;
    case ZYDIS_MNEMONIC_INT:
        form->limits |= LIMIT_SYSCALL32;
        break;
    case ZYDIS_MNEMONIC_CPUID:
        form->limits |= LIMIT_CPUID;
        form->states = STATES_MAX - 1;
        break;
    case ZYDIS_MNEMONIC_CMPXCHG:
    case ZYDIS_MNEMONIC_CMPXCHG8B:
    case ZYDIS_MNEMONIC_CMPXCHG16B:
    case ZYDIS_MNEMONIC_CMPSB:
    case ZYDIS_MNEMONIC_CMPSW:
    case ZYDIS_MNEMONIC_CMPSD:
    case ZYDIS_MNEMONIC_CMPSQ:
    case ZYDIS_MNEMONIC_SCASB:
    case ZYDIS_MNEMONIC_SCASW:
    case ZYDIS_MNEMONIC_SCASD:
    case ZYDIS_MNEMONIC_SCASQ:
        form->limits |= LIMIT_MATCH;
        form->states = 8;
        break;
    case ZYDIS_MNEMONIC_CLZERO:
    case ZYDIS_MNEMONIC_MONITORX:
        form->limits |= LIMIT_XCR;
        form->mem[form->mem_count++] =
            (struct form_mem){.base = GPR_RAX,
                              .index = GPR_NONE,
                              .size = 64,
                              .implicit = 1,
                              .address32 = instruction->address_width == 32};
        d->composable = false;
        break;
    case ZYDIS_MNEMONIC_MWAITX:
        form->limits |= LIMIT_XCR;
        d->composable = false;
        break;
    case ZYDIS_MNEMONIC_XGETBV:
        form->limits |= LIMIT_XCR;
        form->states = 8;
        break;
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV:
        form->limits |= LIMIT_DIVIDE;
        break;
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_LEAVE:
        form->limits |= LIMIT_FRAME | LIMIT_STACK;
        break;
    case ZYDIS_MNEMONIC_RDFSBASE:
    case ZYDIS_MNEMONIC_WRFSBASE:
    case ZYDIS_MNEMONIC_RDGSBASE:
    case ZYDIS_MNEMONIC_WRGSBASE:
        form->limits |= LIMIT_FS_BASE | LIMIT_GS_BASE | LIMIT_ADDRESS;
        form->special = gpr(operands[0].reg.value);
        form->states = 8;
        d->group = GROUP_SEGMENT;
        break;
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC:
        if (form->mem_count && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
            form->limits |= LIMIT_BIT_OFFSET;
            form->special = gpr(operands[1].reg.value);
            form->special_bits = instruction->operand_width;
            d->composable = false;
            if (form->special == form->mem[0].base || form->special == form->mem[0].index)
                d->skipped = "the bit offset would be the address itself, and hit anything";
        }
        break;
    default:
        break;
    }
    if (d->group == GROUP_STRING) {
        if (instruction->attributes &
            (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE))
            form->limits |= LIMIT_COUNT;
        if (instruction->address_width == 32)
            form->limits |= LIMIT_COUNT32;
        form->states = 8;
    }
    bool plain_push = instruction->meta.category == ZYDIS_CATEGORY_PUSH ||
                      instruction->mnemonic == ZYDIS_MNEMONIC_POP;
    if ((d->group == GROUP_STACK && !plain_push) || d->group == GROUP_STRING ||
        d->group == GROUP_SYSTEM || d->group == GROUP_SEGMENT || d->group == GROUP_XSAVE)
        d->composable = false;
}

// In a sequence the stack pointer must stay valid, and addresses of x87 instructions must not come
// to memory: those have tests of their own.
static bool fits_sequence(const ZydisDecodedInstruction *instruction,
                          const ZydisDecodedOperand *operands) {
    if (group_of(instruction) == GROUP_X87_POINTERS)
        return false;
    for (int i = 0; i < instruction->operand_count; i++)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            gpr(operands[i].reg.value) == GPR_RSP &&
            operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
            operands[i].visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN)
            return false;
    return true;
}

struct description describe(const ZydisDecodedInstruction *instruction,
                            const ZydisDecodedOperand *operands) {
    struct description d = {.composable = true};
    d.form.length = instruction->length;
    d.form.states = 4;
    d.form.special = GPR_NONE;
    d.skipped = skip_reason(instruction);
    d.ignored = ignore_outcome(&d.form, instruction, operands);
    d.group = group_of(instruction);
    d.form.x87 = d.group == GROUP_X87;
    for (int i = 0; i < instruction->operand_count; i++)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY)
            describe_memory(&d, instruction, &operands[i]);
    describe_branch(&d, instruction, operands);
    describe_segment(&d, instruction, operands);
    describe_limits(&d, instruction, operands);
    if (d.ignored || !fits_sequence(instruction, operands))
        d.composable = false;
    return d;
}
