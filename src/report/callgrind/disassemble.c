#include "report/callgrind/disassemble.h"

#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/text.h"

struct disassembler {
    int fd;
    struct segment {
        uint64_t address, offset, size;
    } segments[ELF_FILE_SEGMENTS]; // those with code
    size_t count;
    ZydisDecoder decoder;
    ZydisFormatter formatter;
};

// ---- the file ----

static void read_segments(struct disassembler *disassembler) {
    Elf64_Phdr segments[ELF_FILE_SEGMENTS];
    size_t count = elf_file_open(disassembler->fd, segments);
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_LOAD && segments[i].p_flags & PF_X)
            disassembler->segments[disassembler->count++] =
                (struct segment){segments[i].p_vaddr, segments[i].p_offset, segments[i].p_filesz};
}

struct disassembler *disassemble_open(const char *object) {
    struct stat status;
    int fd = open(object, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return NULL;
    struct disassembler *disassembler = base_allocate(sizeof *disassembler);
    *disassembler = (struct disassembler){.fd = fd};
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))
        read_segments(disassembler);
    if (!disassembler->count) {
        disassemble_close(disassembler);
        return NULL;
    }
    ZydisDecoderInit(&disassembler->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatter *formatter = &disassembler->formatter;
    ZydisFormatterInit(formatter, ZYDIS_FORMATTER_STYLE_ATT);
    ZydisFormatterSetProperty(formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
                              ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(formatter, ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(formatter, ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED);
    ZydisFormatterSetProperty(formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
    return disassembler;
}

void disassemble_close(struct disassembler *disassembler) {
    close(disassembler->fd);
    free(disassembler);
}

// ---- instructions ----

static size_t read_code(const struct disassembler *disassembler, uint64_t address,
                        uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH]) {
    for (size_t i = 0; i < disassembler->count; i++) {
        const struct segment *segment = &disassembler->segments[i];
        uint64_t at = address - segment->address;
        if (address < segment->address || at >= segment->size)
            continue;
        size_t size = segment->size - at < ZYDIS_MAX_INSTRUCTION_LENGTH
                          ? segment->size - at
                          : ZYDIS_MAX_INSTRUCTION_LENGTH;
        return elf_file_read(disassembler->fd, segment->offset + at, code, size) ? size : 0;
    }
    return 0;
}

size_t disassemble_at(struct disassembler *disassembler, uint64_t address,
                      char text[DISASSEMBLE_TEXT]) {
    uint8_t code[ZYDIS_MAX_INSTRUCTION_LENGTH];
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    size_t size = read_code(disassembler, address, code);
    if (!size)
        return 0;
    if (!ZYAN_SUCCESS(
            ZydisDecoderDecodeFull(&disassembler->decoder, code, size, &instruction, operands)) ||
        !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&disassembler->formatter, &instruction,
                                                      operands, instruction.operand_count_visible,
                                                      text, DISASSEMBLE_TEXT, address, NULL))) {
        strcpy(text, "(bad)");
        return 1;
    }
    return instruction.length;
}
