// Machine code of an object file as text, for costs by instruction.
//
// Addresses are those that the object's own tables count. Only what an executable segment of an
// x86-64 ELF file holds is read: of a file that is something else nothing is shown, however it is
// named in a profile. Nothing in the file is believed. Supervisor context.
#ifndef QUERN_REPORT_DISASSEMBLE_H
#define QUERN_REPORT_DISASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISASSEMBLE_TEXT 128 // bytes of an instruction's text at most, with the end

struct disassembler;

// NULL: it is no such file, or cannot be read.
struct disassembler *disassemble_open(const char *object);
void disassemble_close(struct disassembler *disassembler);
// The instruction at the address, in AT&T syntax; its length, 0 if there is no code.
size_t disassemble_at(struct disassembler *disassembler, uint64_t address,
                      char text[DISASSEMBLE_TEXT]);

#endif
