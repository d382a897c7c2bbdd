// Every operation of the assembler, as Zydis reads it: mnemonic, operands, length.
#include <string.h>

#include <Zydis/Zydis.h>

#include "engine/assembler/assembler.h"
#include "unit.h"

static uint8_t code[256];
static struct assembler assembler, *const a = &assembler;

static ZydisDecodedInstruction decoded;
static ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];

static void begin(void) {
    memset(code, 0xcc, sizeof code);
    assembler = (struct assembler){.at = code};
}

// Decodes the instruction at an offset; it must end at or before what has been written.
static const char *text_at(unsigned offset) {
    static char text[256];
    ZydisDecoder decoder;
    ZydisFormatter formatter;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
                              ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE,
                              ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_FORCE_SIZE, ZYAN_TRUE);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_DISP_PADDING,
                              ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED);
    unsigned size = a->at - code - offset;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + offset, size, &decoded, operands)))
        return "(bad)";
    ZydisFormatterFormatInstruction(&formatter, &decoded, operands, decoded.operand_count_visible,
                                    text, sizeof text, ZYDIS_RUNTIME_ADDRESS_NONE, NULL);
    return text;
}

static const char *text(void) {
    const char *text = text_at(0);
    return decoded.length == a->at - code ? text : "(another length)";
}

#define CHECK_CODE(expected, ...)                                                                  \
    do {                                                                                           \
        begin();                                                                                   \
        __VA_ARGS__;                                                                               \
        CHECK_STR(text(), expected);                                                               \
    } while (0)

// The same, with the number of bytes.
#define CHECK_SIZE(size, expected, ...)                                                            \
    do {                                                                                           \
        CHECK_CODE(expected, __VA_ARGS__);                                                         \
        CHECK_EQ(a->at - code, size);                                                              \
    } while (0)

// ---- operands ----------------------------------------------------------------------------------

static int number_of(ZydisRegister reg) {
    return reg == ZYDIS_REGISTER_NONE ? ASM_NONE : ZydisRegisterGetId(reg);
}

static unsigned least_size(const struct asm_memory *m) {
    if (m->base < 0 || m->form == ASM_LONG)
        return 32;
    bool is_absent = m->displacement == 0 && (m->base & 7) != RBP;
    bool is_small = m->displacement >= -128 && m->displacement <= 127;
    if (m->form == ASM_BYTE)
        return 8;
    if (m->form == ASM_UNSCALED)
        return is_absent ? 0 : 32;
    return is_absent ? 0 : is_small ? 8 : 32;
}

static void check_memory(unsigned reg, struct asm_memory m) {
    begin();
    asm_mov_reg_mem(a, 64, reg, m);
    const char *shown = text();
    const ZydisDecodedOperandMem *mem = &operands[1].mem;
    static const ZydisRegister segments[] = {ZYDIS_REGISTER_NONE, ZYDIS_REGISTER_FS,
                                             ZYDIS_REGISTER_GS};
    bool is_same = decoded.length == a->at - code && decoded.mnemonic == ZYDIS_MNEMONIC_MOV &&
                   number_of(operands[0].reg.value) == (int)reg && operands[0].size == 64 &&
                   number_of(mem->base) == m.base && number_of(mem->index) == m.index &&
                   (m.index < 0 || mem->scale == 1u << m.scale) &&
                   mem->disp.value == m.displacement &&
                   decoded.address_width == (m.is_narrow ? 32 : 64) &&
                   (!m.segment || mem->segment == segments[m.segment]) &&
                   decoded.raw.disp.size == least_size(&m) &&
                   (!decoded.raw.disp.size || a->displacement == code + decoded.raw.disp.offset);
    if (!is_same)
        unit_fail(__FILE__, __LINE__, "base %d index %d scale %d displacement %ld: %s", m.base,
                  m.index, m.scale, (long)m.displacement, shown);
}

TEST(operands_of_all_shapes) {
    static const int64_t displacements[] = {0, 1, -1, 127, -128, 128, -129, 0x12345678, INT32_MIN};
    for (int base = ASM_NONE; base < GPR_COUNT; base++)
        for (int index = ASM_NONE; index < GPR_COUNT; index++)
            for (unsigned i = 0; i < sizeof displacements / sizeof *displacements; i++)
                for (unsigned scale = 0; scale < 4; scale++) {
                    if (index == RSP)
                        continue;
                    struct asm_memory m =
                        asm_indexed(base, index, index < 0 ? 0 : scale, displacements[i]);
                    check_memory((base + index + 16) % GPR_COUNT, m);
                    m.segment = scale % 3;
                    m.form = m.displacement == (int8_t)m.displacement ? ASM_BYTE : ASM_LONG;
                    check_memory(RCX, m);
                    m.form = ASM_UNSCALED;
                    m.is_narrow = i % 2;
                    check_memory(R9, m);
                }
}

TEST(an_unscaled_operand_always_has_a_sib_byte) {
    CHECK_SIZE(
        4, "mov rcx, qword ptr [rdx]",
        asm_mov_reg_mem(a, 64, RCX,
                        (struct asm_memory){.base = RDX, .index = ASM_NONE, .form = ASM_UNSCALED}));
    CHECK(decoded.raw.sib.offset);
}

TEST(operands_relative_to_rip_count_the_immediate) {
    begin();
    asm_cmp_mem_imm32(a, 64, asm_rip((uint64_t)code + 100), 0x11223344);
    CHECK_STR(text(), "cmp qword ptr [rip+0x59], 0x11223344");
    CHECK_EQ(decoded.raw.disp.value + decoded.length, 100);
    begin();
    asm_mov_reg_mem(a, 64, R8, asm_rip((uint64_t)code - 1));
    CHECK_STR(text(), "mov r8, qword ptr [rip-0x8]");
}

TEST(fields_can_be_patched) {
    begin();
    asm_add_mem_imm(a, 64, asm_in_segment(ASM_GS, asm_at32(RBX, 0)), 1);
    memcpy(a->displacement, &(uint32_t){0x1234}, 4);
    *a->immediate = 5;
    CHECK_STR(text(), "add qword ptr gs:[rbx+0x1234], 0x5");
    begin();
    asm_lea(a, 64, RCX, asm_at8(RCX, 0));
    *a->displacement = 9;
    CHECK_STR(text(), "lea rcx, [rcx+0x9]");
}

// ---- moves -------------------------------------------------------------------------------------

TEST(moves) {
    CHECK_SIZE(3, "mov rcx, r9", asm_mov_reg_reg(a, 64, RCX, R9));
    CHECK_SIZE(2, "mov edx, ecx", asm_mov_reg_reg(a, 32, RDX, RCX));
    CHECK_CODE("mov r10w, dx", asm_mov_reg_reg(a, 16, R10, RDX));
    CHECK_SIZE(3, "mov sil, al", asm_mov_reg_reg(a, 8, RSI, RAX));
    CHECK_SIZE(2, "mov bl, al", asm_mov_reg_reg(a, 8, RBX, RAX));
    CHECK_CODE("mov r12d, dword ptr [rsp]", asm_mov_reg_mem(a, 32, R12, asm_at(RSP, 0)));
    CHECK_CODE("mov dil, byte ptr [r13]", asm_mov_reg_mem(a, 8, RDI, asm_at(R13, 0)));
    CHECK_CODE("mov word ptr [rax], r8w", asm_mov_mem_reg(a, 16, asm_at(RAX, 0), R8));
    CHECK_CODE("mov qword ptr fs:[0x40], rsp",
               asm_mov_mem_reg(a, 64, asm_in_segment(ASM_FS, asm_absolute(0x40)), RSP));
    CHECK_SIZE(5, "mov ecx, 0xFFFFFFFF", asm_mov_reg_imm(a, RCX, UINT32_MAX));
    CHECK_SIZE(6, "mov r15d, 0x1", asm_mov_reg_imm(a, R15, 1));
    CHECK_SIZE(10, "mov rdx, 0x100000000", asm_mov_reg_imm(a, RDX, 1ul << 32));
    CHECK_SIZE(10, "mov r9, 0x1", asm_mov_reg_imm64(a, R9, 1));
    CHECK_CODE("mov byte ptr [rcx], 0xFF", asm_mov_mem_imm(a, 8, asm_at(RCX, 0), 0xff));
    CHECK_CODE("mov word ptr [rcx], 0x1234", asm_mov_mem_imm(a, 16, asm_at(RCX, 0), 0x1234));
    CHECK_CODE("mov dword ptr [rcx], 0x12345678",
               asm_mov_mem_imm(a, 32, asm_at(RCX, 0), 0x12345678));
    CHECK_CODE("mov qword ptr [r8], 0xFFFFFFFFFFFFFFFF",
               asm_mov_mem_imm(a, 64, asm_at(R8, 0), -1u));
    CHECK_SIZE(3, "movzx ecx, ax", asm_movzx_reg_reg(a, RCX, 16, RAX));
    CHECK_SIZE(4, "movzx r8d, dil", asm_movzx_reg_reg(a, R8, 8, RDI));
    CHECK_SIZE(4, "movzx eax, spl", asm_movzx_reg_reg(a, RAX, 8, RSP));
    CHECK_CODE("movzx ecx, byte ptr [rcx+0x1000]",
               asm_movzx_reg_mem(a, RCX, 8, asm_at(RCX, 0x1000)));
    CHECK_CODE("movzx r9d, word ptr [rdx]", asm_movzx_reg_mem(a, R9, 16, asm_at(RDX, 0)));
}

TEST(addresses) {
    CHECK_CODE("lea rcx, [rsp+0x80]", asm_lea(a, 64, RCX, asm_at(RSP, 0x80)));
    CHECK_CODE("lea r8d, [rax+rbx*4]", asm_lea(a, 32, R8, asm_indexed(RAX, RBX, 2, 0)));
    struct asm_memory narrow = asm_indexed(RAX, R9, 3, 4);
    narrow.is_narrow = true;
    CHECK_CODE("lea rcx, [eax+r9d*8+0x4]", asm_lea(a, 64, RCX, narrow));
    for (unsigned base = 0; base < GPR_COUNT; base++) {
        begin();
        asm_lea_sum(a, RCX, base, RDX);
        text();
        CHECK_EQ(a->at - code, 5);
        CHECK_EQ(decoded.mnemonic, ZYDIS_MNEMONIC_LEA);
        CHECK_EQ(number_of(operands[1].mem.base), base);
        CHECK_EQ(number_of(operands[1].mem.index), RDX);
    }
}

TEST(pushes_and_pops) {
    CHECK_SIZE(1, "push rbp", asm_push_reg(a, RBP));
    CHECK_SIZE(2, "push r8", asm_push_reg(a, R8));
    CHECK_SIZE(1, "pop rcx", asm_pop_reg(a, RCX));
    CHECK_SIZE(2, "pop r15", asm_pop_reg(a, R15));
    CHECK_CODE("push qword ptr fs:[0x10]",
               asm_push_mem(a, asm_in_segment(ASM_FS, asm_absolute(0x10))));
    CHECK_CODE("pop qword ptr fs:[0x10]",
               asm_pop_mem(a, asm_in_segment(ASM_FS, asm_absolute(0x10))));
    CHECK_SIZE(5, "push 0xFFFFFFFFFFFFFFFE", asm_push_imm(a, -2));
    CHECK_CODE("pushfq", asm_pushf(a));
    CHECK_CODE("popfq", asm_popf(a));
}

// ---- arithmetic --------------------------------------------------------------------------------

TEST(arithmetic_of_registers) {
    CHECK_CODE("add rdx, r9", asm_add_reg_reg(a, 64, RDX, R9));
    CHECK_CODE("xor edx, ecx", asm_xor_reg_reg(a, 32, RDX, RCX));
    CHECK_CODE("or esi, ecx", asm_or_reg_reg(a, 32, RSI, RCX));
    CHECK_CODE("and rcx, rdi", asm_and_reg_reg(a, 64, RCX, RDI));
    CHECK_CODE("cmp rcx, rsp", asm_cmp_reg_reg(a, 64, RCX, RSP));
    CHECK_CODE("test al, al", asm_test_reg_reg(a, 8, RAX, RAX));
    CHECK_CODE("test eax, eax", asm_test_reg_reg(a, 32, RAX, RAX));
    CHECK_CODE("cmp rcx, qword ptr fs:[0x20]",
               asm_cmp_reg_mem(a, 64, RCX, asm_in_segment(ASM_FS, asm_absolute(0x20))));
    CHECK_CODE("and rcx, qword ptr fs:[0x20]",
               asm_and_reg_mem(a, 64, RCX, asm_in_segment(ASM_FS, asm_absolute(0x20))));
    CHECK_CODE("xor edx, dword ptr fs:[0x20]",
               asm_xor_reg_mem(a, 32, RDX, asm_in_segment(ASM_FS, asm_absolute(0x20))));
    CHECK_CODE("not rdi", asm_not_reg(a, 64, RDI));
    CHECK_CODE("inc r9", asm_inc_reg(a, 64, R9));
    CHECK_CODE("shl r11, 0x15", asm_shl_reg_imm(a, 64, R11, 21));
    CHECK_CODE("shr edx, 0x3", asm_shr_reg_imm(a, 32, RDX, 3));
    CHECK_CODE("sar rcx, 0x38", asm_sar_reg_imm(a, 64, RCX, 56));
    CHECK_CODE("shr rdx, cl", asm_shr_reg_cl(a, 64, RDX));
    CHECK_CODE("bt r14, 0x2B", asm_bt_reg_imm(a, 64, R14, 43));
}

TEST(arithmetic_with_immediates) {
    CHECK_SIZE(2, "add al, 0x7F", asm_add_reg_imm(a, 8, RAX, 127));
    CHECK_SIZE(4, "add bpl, 0x7F", asm_add_reg_imm(a, 8, RBP, 127));
    CHECK_SIZE(4, "add rsp, 0x30", asm_add_reg_imm(a, 64, RSP, 48));
    CHECK_SIZE(7, "add rcx, 0x80", asm_add_reg_imm(a, 64, RCX, 128));
    CHECK_SIZE(7, "add rcx, 0x30", asm_add_reg_imm32(a, 64, RCX, 48));
    CHECK_SIZE(4, "add cx, 0x3", asm_add_reg_imm(a, 16, RCX, 3));
    CHECK_SIZE(5, "add dx, 0x1234", asm_add_reg_imm(a, 16, RDX, 0x1234));
    CHECK_CODE("or r9d, 0xFFFFFFFF", asm_or_reg_imm(a, 32, R9, -1));
    CHECK_CODE("and edx, 0xFF0", asm_and_reg_imm(a, 32, RDX, 0xff0));
    CHECK_SIZE(6, "and edx, 0x8", asm_and_reg_imm32(a, 32, RDX, 8));
    CHECK_CODE("sub rcx, 0xFFFFFFFFFFFFFF80", asm_sub_reg_imm(a, 64, RCX, -128));
    CHECK_SIZE(7, "sub rax, 0x8", asm_sub_reg_imm32(a, 64, RAX, 8));
    CHECK_SIZE(4, "cmp rdx, 0x40", asm_cmp_reg_imm(a, 64, RDX, 64));
    CHECK_SIZE(7, "cmp rdx, 0x40", asm_cmp_reg_imm32(a, 64, RDX, 64));
}

TEST(arithmetic_in_memory) {
    struct asm_memory m = asm_in_segment(ASM_GS, asm_at(R8, 8));
    CHECK_SIZE(6, "add qword ptr gs:[r8+0x8], 0x7", asm_add_mem_imm(a, 64, m, 7));
    CHECK_SIZE(9, "add qword ptr gs:[r8+0x8], 0x7", asm_add_mem_imm32(a, 64, m, 7));
    CHECK_CODE("or qword ptr [rsp], 0x100", asm_or_mem_imm(a, 64, asm_at(RSP, 0), 0x100));
    CHECK_SIZE(6, "cmp byte ptr gs:[r8+0x8], 0x0", asm_cmp_mem_imm(a, 8, m, 0));
    CHECK_SIZE(7, "cmp word ptr gs:[r8+0x8], 0x0", asm_cmp_mem_imm(a, 16, m, 0));
    CHECK_CODE("cmp dword ptr gs:[r8+0x8], 0xFFFFFFFF", asm_cmp_mem_imm(a, 32, m, -1));
    CHECK_SIZE(9, "cmp qword ptr gs:[r8+0x8], 0x1", asm_cmp_mem_imm32(a, 64, m, 1));
    CHECK_CODE("test dword ptr gs:[r8+0x8], 0x400", asm_test_mem_imm(a, 32, m, 0x400));
}

TEST(operations_of_flags_and_the_kernel) {
    CHECK_SIZE(3, "seto al", asm_setcc(a, ASM_OVERFLOW, RAX));
    CHECK_SIZE(4, "setnz sil", asm_setcc(a, ASM_NOT_EQUAL, RSI));
    CHECK_CODE("lahf", asm_lahf(a));
    CHECK_CODE("sahf", asm_sahf(a));
    CHECK_CODE("cld", asm_cld(a));
    CHECK_CODE("std", asm_std(a));
    CHECK_CODE("syscall", asm_syscall(a));
}

// ---- control flow ------------------------------------------------------------------------------

TEST(jumps_and_calls) {
    begin();
    asm_jmp(a, (uint64_t)code + 0x50);
    CHECK_STR(text(), "jmp +0x50");
    begin();
    asm_call(a, (uint64_t)code + 0x50);
    CHECK_STR(text(), "call +0x50");
    CHECK_CODE("jmp rcx", asm_jmp_reg(a, RCX));
    CHECK_CODE("jmp r11", asm_jmp_reg(a, R11));
    CHECK_CODE("call rax", asm_call_reg(a, RAX));
    CHECK_CODE("jmp qword ptr fs:[0x30]",
               asm_jmp_mem(a, asm_in_segment(ASM_FS, asm_absolute(0x30))));
    CHECK_CODE("ret", asm_ret(a));
}

TEST(jumps_land_where_they_are_told) {
    begin();
    struct asm_jump jumps[] = {asm_jmp_forward(a), asm_jmp_short(a), asm_jcc_forward(a, ASM_ABOVE),
                               asm_jcc_short(a, ASM_EQUAL), asm_jrcxz(a)};
    asm_nops(a, 11);
    for (unsigned i = 0; i < sizeof jumps / sizeof *jumps; i++)
        asm_land(a, jumps[i]);
    CHECK_STR(text_at(0), "jmp +0x1C");
    CHECK_STR(text_at(5), "jmp +0x17");
    CHECK_STR(text_at(7), "jnbe +0x15");
    CHECK_STR(text_at(13), "jz +0xF");
    CHECK_STR(text_at(15), "jrcxz +0xD");
    asm_land_at(jumps[2], (uint64_t)code);
    CHECK_STR(text_at(7), "jnbe -0x7");
}

TEST(jumps_have_all_conditions) {
    static const char *const names[] = {"jo", "jno", "jb", "jnb", "jz", "jnz", "jbe", "jnbe",
                                        "js", "jns", "jp", "jnp", "jl", "jnl", "jle", "jnle"};
    for (unsigned i = 0; i < 16; i++) {
        char expected[16];
        snprintf(expected, sizeof expected, "%s +0x6", names[i]);
        CHECK_CODE(expected, asm_jcc_forward(a, i));
        snprintf(expected, sizeof expected, "%s +0x2", names[i]);
        CHECK_CODE(expected, asm_jcc_short(a, i));
    }
}

TEST(branches_on_the_counter) {
    CHECK_CODE("loopne +0x2", asm_counter_branch(a, ASM_LOOPNE, false));
    CHECK_CODE("loope +0x2", asm_counter_branch(a, ASM_LOOPE, false));
    CHECK_CODE("loop +0x3", asm_counter_branch(a, ASM_LOOP, true));
    CHECK_CODE("jecxz +0x3", asm_counter_branch(a, ASM_JRCXZ, true));
}

TEST(nops_fill_any_number_of_bytes) {
    for (unsigned size = 0; size < 30; size++) {
        begin();
        asm_nops(a, size);
        CHECK_EQ(a->at - code, size);
        unsigned count = 0;
        for (unsigned at = 0; at < size; at += decoded.length, count++) {
            text_at(at);
            CHECK_EQ(decoded.mnemonic, ZYDIS_MNEMONIC_NOP);
        }
        CHECK_EQ(count, (size + 7) / 8);
    }
}

TEST(patched_fields_stay_within_a_cache_line) {
    static _Alignas(64) uint8_t lines[128];
    for (unsigned start = 0; start < 64; start++) {
        struct assembler here = {.at = lines + start};
        asm_align_patch(&here, 2);
        CHECK(asm_address(&here) % 64 + 2 <= 60 || asm_address(&here) % 64 + 2 >= 64);
        CHECK(here.at - (lines + start) < 4);
    }
}

TEST(alignment_fills) {
    begin();
    a->at = code + 16 - (uint64_t)code % 16 + 3;
    asm_align(a, 16, 0x90);
    CHECK_EQ(asm_address(a) % 16, 0);
    CHECK_EQ(a->at[-13], 0x90);
}

// ---- other registers ---------------------------------------------------------------------------

TEST(vectors) {
    struct asm_memory m = asm_at32(RDI, 0x40);
    CHECK_CODE("movups xmm7, xmmword ptr [rdi+0x40]", asm_vector_reg_mem(a, 128, 7, m));
    CHECK_CODE("movups xmmword ptr [rdi+0x40], xmm15", asm_vector_mem_reg(a, 128, m, 15));
    CHECK_CODE("vmovdqu ymm1, ymmword ptr [rdi+0x40]", asm_vector_reg_mem(a, 256, 1, m));
    CHECK_CODE("vmovdqu ymmword ptr [rdi+0x40], ymm12", asm_vector_mem_reg(a, 256, m, 12));
    CHECK_CODE("vmovdqu64 zmm3, zmmword ptr [rdi+0x40]", asm_vector_reg_mem(a, 512, 3, m));
    CHECK_CODE("vmovdqu64 zmmword ptr [rdi+0x40], zmm13", asm_vector_mem_reg(a, 512, m, 13));
    CHECK_CODE("vmovdqu64 zmmword ptr [rdi], zmm29",
               asm_vector_mem_reg(a, 512, asm_at(RDI, 0), 29));
    CHECK_CODE("vmovdqu64 zmm16, zmmword ptr [r8+r9*1+0x4]",
               asm_vector_reg_mem(a, 512, 16, asm_indexed(R8, R9, 0, 4)));
    CHECK_CODE("vmovdqu ymm9, ymmword ptr fs:[r8+r9*2]",
               asm_vector_reg_mem(a, 256, 9, asm_in_segment(ASM_FS, asm_indexed(R8, R9, 1, 0))));
}

TEST(lanes) {
    struct asm_memory m = asm_at32(RDX, -8);
    CHECK_CODE("movd xmm15, dword ptr [rdx-0x8]", asm_lanes_reg_mem(a, 32, 15, m));
    CHECK_CODE("movq xmm15, qword ptr [rdx-0x8]", asm_lanes_reg_mem(a, 64, 15, m));
    CHECK_CODE("movdqu xmm2, xmmword ptr [rdx-0x8]", asm_lanes_reg_mem(a, 128, 2, m));
    CHECK_CODE("movd dword ptr [rdx-0x8], xmm15", asm_lanes_mem_reg(a, 32, m, 15));
    CHECK_CODE("movq qword ptr [rdx-0x8], xmm15", asm_lanes_mem_reg(a, 64, m, 15));
    CHECK_CODE("movdqu xmmword ptr [rdx-0x8], xmm2", asm_lanes_mem_reg(a, 128, m, 2));
    begin();
    asm_paddusw_reg_mem(a, 15, asm_rip((uint64_t)code + 0x20));
    CHECK_STR(text(), "paddusw xmm15, xmmword ptr [rip+0x17]");
    begin();
    asm_pcmpeqb_reg_mem(a, 0, asm_rip((uint64_t)code + 0x20));
    CHECK_STR(text(), "pcmpeqb xmm0, xmmword ptr [rip+0x18]");
    CHECK_CODE("pmovmskb ecx, xmm0", asm_pmovmskb(a, RCX, 0));
    CHECK_CODE("pmovmskb r9d, xmm15", asm_pmovmskb(a, R9, 15));
    CHECK_CODE("pxor xmm0, xmm0", asm_pxor_reg_reg(a, 0, 0));
    CHECK_CODE("pxor xmm9, xmm15", asm_pxor_reg_reg(a, 9, 15));
}

TEST(mmx_and_masks) {
    struct asm_memory m = asm_at32(RDI, 0x40), far = asm_at(R8, 0);
    CHECK_CODE("movq mm3, qword ptr [rdi+0x40]", asm_mmx_reg_mem(a, 3, m));
    CHECK_CODE("movq qword ptr [rdi+0x40], mm3", asm_mmx_mem_reg(a, m, 3));
    CHECK_CODE("movq rax, mm5", asm_mov_reg_mmx(a, RAX, 5));
    CHECK_CODE("kmovq k2, qword ptr [rdi+0x40]", asm_mask_reg_mem(a, 64, 2, m));
    CHECK_CODE("kmovq qword ptr [rdi+0x40], k2", asm_mask_mem_reg(a, 64, m, 2));
    CHECK_CODE("kmovw k2, word ptr [r8]", asm_mask_reg_mem(a, 16, 2, far));
    CHECK_CODE("kmovw word ptr [rdi+0x40], k2", asm_mask_mem_reg(a, 16, m, 2));
    CHECK_CODE("kmovq rax, k7", asm_mov_reg_mask(a, 64, RAX, 7));
    CHECK_CODE("kmovw eax, k7", asm_mov_reg_mask(a, 16, RAX, 7));
    CHECK_CODE("shrx rdx, rcx, rdx", asm_shrx(a, RDX, RCX, RDX));
    CHECK_CODE("shrx rdx, r12, r9", asm_shrx(a, RDX, R12, R9));
}

UNIT_MAIN()
