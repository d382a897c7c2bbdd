// recorder/code.c: what it decodes is what Zydis decodes, and a diverted function still works.
#include "recorder/code.c"

#include "unit.h"

#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/elf_view.h"

// ---- decoding ----

static unsigned decoded, refused;

static void compare_function(const ZydisDecoder *decoder, const uint8_t *code, size_t size) {
    ZydisDecodedInstruction wanted;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    struct insn insn;
    for (size_t at = 0; at + LONGEST < size; at += insn.size) {
        if (!decode(code + at, &insn)) {
            refused++;
            return;
        }
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, code + at, size - at, &wanted, operands)))
            return; // data among code
        decoded++;
        CHECK_EQ(insn.size, wanted.length);
        bool is_relative = wanted.attributes & ZYDIS_ATTRIB_IS_RELATIVE;
        CHECK_EQ(insn.relative != 0, is_relative);
        if (is_relative && wanted.raw.imm[0].is_relative)
            CHECK_EQ(insn.relative, wanted.raw.imm[0].offset);
        else if (is_relative)
            CHECK_EQ(insn.relative, wanted.raw.disp.offset);
        if (insn.flow == FLOW_END)
            return;
    }
}

static void compare_file(const char *path) {
    struct stat status;
    struct elf_view view;
    Elf64_Shdr table, text;
    ZydisDecoder decoder;
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fstat(fd, &status) == 0);
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(bytes != MAP_FAILED && elf_view_open(&view, bytes, (uint64_t)status.st_size));
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    elf_view_find_section(&view, ".dynsym", &table);
    CHECK(elf_view_find_section(&view, ".text", &text) < view.section_count);
    const Elf64_Sym *symbols = elf_view_contents(&view, &table);
    for (size_t i = 0; i < table.sh_size / sizeof *symbols; i++) {
        uint64_t start = symbols[i].st_value, size = symbols[i].st_size;
        if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && start >= text.sh_addr &&
            start + size <= text.sh_addr + text.sh_size)
            compare_function(&decoder, view.bytes + text.sh_offset + (start - text.sh_addr), size);
    }
    munmap(bytes, (size_t)status.st_size);
    close(fd);
}

TEST(code_is_decoded_as_by_zydis) {
    static const char *const files[] = {
        "libc.so.6",        "libstdc++.so.6",   "libjemalloc.so.2",
        "libmimalloc.so.2", "libtcmalloc.so.4", "libZydis.so.4.0",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128];
        snprintf(path, sizeof path, "/lib/x86_64-linux-gnu/%s", files[i]);
        if (access(path, R_OK) == 0)
            compare_file(path);
    }
    CHECK(decoded > 50000);
    NOTE("%u instructions, %u functions with others", decoded, refused);
}

// ---- diverting ----

__attribute__((noinline)) static long square(long a) {
    __asm__ volatile("" : "+r"(a));
    return a * a + 1;
}

static struct code_divert diversion;
static const char *seen;

static long on_square(long a, long b, long c, long d, long e, const char *context) {
    seen = context;
    return ((long (*)(long))diversion.original)(a)*10;
}

// Begins with a jump over data, and with an operand relative to rip.
long code_test_odd(long a);
__asm__(".text\n"
        ".type code_test_odd, @function\n"
        "code_test_odd:\n"
        "endbr64\n"
        "cmp $7, %rdi\n"
        "je 1f\n"
        "mov code_test_word(%rip), %rax\n"
        "add %rdi, %rax\n"
        "ret\n"
        "1: xor %eax, %eax\n"
        "ret\n"
        ".size code_test_odd, . - code_test_odd\n"
        ".data\n"
        "code_test_word: .quad 1000\n"
        ".text\n");

// Jumps back to its second instruction.
long code_test_loop(long a);
__asm__(".text\n"
        "code_test_loop:\n"
        "xor %eax, %eax\n"
        "1: add %rdi, %rax\n"
        "dec %rdi\n"
        "jne 1b\n"
        "ret\n");

// Calls at once.
long code_test_calls(long a);
__asm__(".text\n"
        "code_test_calls:\n"
        "push %rbx\n"
        "call 1f\n"
        "inc %rax\n"
        "pop %rbx\n"
        "ret\n"
        "1: lea 1000(%rdi), %rax\n"
        "ret\n");

static bool divert(long (*function)(long)) {
    uint8_t *room = code_map_near((uint64_t)function, (uint64_t)function + 64, 4096);
    CHECK(room != NULL);
    diversion = (struct code_divert){.function = (uint8_t *)function};
    return code_prepare(&diversion, room, (void *)on_square, "context") && code_seal(room, 4096) &&
           code_divert(&diversion);
}

TEST(code_diverts_functions) {
    CHECK_EQ(square(7), 50);
    CHECK(divert(square));
    CHECK_EQ(square(7), 500);
    CHECK(seen && strcmp(seen, "context") == 0);
}

TEST(code_moves_jumps_and_operands) {
    CHECK(divert(code_test_odd));
    CHECK_EQ(code_test_odd(7), 0);
    CHECK_EQ(code_test_odd(5), 10050);
}

TEST(code_moves_calls) {
    CHECK(divert(code_test_calls));
    CHECK_EQ(code_test_calls(1), 10020);
}

TEST(code_refuses_loops_to_the_first_instructions) {
    CHECK(!divert(code_test_loop));
    CHECK_EQ(code_test_loop(3), 6);
}

UNIT_MAIN()
