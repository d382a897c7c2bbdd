// --debug-print-blocks: target code and what has become of it.
#include <stdio.h>

#include "engine/layout.h"
#include "engine/log.h"
#include "engine/translate/builder.h"
#include "engine/translate/translate.h"

static void print_code(const char *title, const uint8_t *bytes, uint64_t address, unsigned size) {
    ZydisDecoder decoder;
    ZydisFormatter formatter;
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    log_debug("%s", title);
    for (unsigned at = 0; at < size;) {
        char text[256];
        if (!ZYAN_SUCCESS(
                ZydisDecoderDecodeFull(&decoder, bytes + at, size - at, &insn, operands))) {
            log_debug("  %lx: (bad) %02x", address + at, bytes[at]);
            at++;
            continue;
        }
        ZydisFormatterFormatInstruction(&formatter, &insn, operands, insn.operand_count_visible,
                                        text, sizeof text, address + at, NULL);
        log_debug("  %lx: %s", address + at, text);
        at += insn.length;
    }
}

void translate_print(const struct block *block, const struct code_bytes *code) {
    print_code("target code:", code->bytes, code->pc, block->guest_size);
    print_code("translated:", (const uint8_t *)cache_start + block->code, cache_start + block->code,
               block->code_size);
}
