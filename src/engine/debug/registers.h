// The registers of a stopped thread as gdb numbers them. For the server (debug.h), at a stop: the
// thread's task holds its state. The numbers follow from registers_description, which gdb reads
// first; they depend on the processor.
#ifndef QUERN_ENGINE_DEBUG_REGISTERS_H
#define QUERN_ENGINE_DEBUG_REGISTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task;

enum { REGISTER_MOST = 16 }; // bytes of one

// The description of all registers, in XML: target.xml of qXfer:features.
const char *registers_description(void);
// As many as there are on this processor, without shadows, which have the numbers behind them.
unsigned registers_count(void);
// The register's bytes; their number. 0: there is none with this number.
unsigned registers_read(const struct task *, unsigned number, uint8_t bytes[REGISTER_MOST]);
unsigned registers_size(unsigned number);
// False: it cannot be changed, or not at this stop.
bool registers_write(struct task *, unsigned number, const uint8_t *bytes);

#endif
