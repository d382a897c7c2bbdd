// The memory that forms may touch: mapped at fixed addresses, filled with a random background,
// checked and restored after each run.
#ifndef DIFFERENTIAL_MEMORY_H
#define DIFFERENTIAL_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

// Maps both areas; exits with status 2 if an address is taken.
void memory_map(uint64_t high);

// Writes what lies inside data or stack; the rest is dropped.
void memory_write(uint64_t address, const void *bytes, unsigned count);

// Reads what lies inside data or stack; false if not all of it does.
bool memory_read(uint64_t address, void *bytes, unsigned count);

// Reports every 8-byte word that differs from the background to `changed` and restores it.
void memory_restore(void (*changed)(uint64_t address, uint64_t value, void *argument),
                    void *argument);

#endif
