#include "engine.h"

#include <errno.h>

#include "../../../engine/differential/layout.h"
#include "../../../engine/differential/state.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/memcheck/target/track/parts.h"

enum { READ_ONLY = 0x1000, REGION_SIZE = DATA_SIZE + READ_ONLY, REGIONS = 4 };

#define IN ((struct cpu_state *)(uintptr_t)CONTEXT_IN)

struct shadow_registers engine_shadow;
struct engine_findings engine_findings;
static uint8_t shadows[REGIONS][REGION_SIZE];
static bool missing[REGIONS][REGION_SIZE];
static const uint64_t starts[REGIONS] = {AREA_LOW + AREA_DATA, AREA_LOW + AREA_STACK,
                                         AREA_HIGH + AREA_DATA, AREA_HIGH + AREA_STACK};

static int region_of(uint64_t address) {
    for (unsigned i = 0; i < REGIONS; i++)
        if (address >= starts[i] && address < starts[i] + (i % 2 ? STACK_SIZE : REGION_SIZE))
            return i;
    return -1;
}

uint8_t *engine_shadow_byte(uint64_t address) {
    int region = region_of(address);
    return region < 0 ? NULL : &shadows[region][address - starts[region]];
}

void engine_clear_shadow(void) {
    for (unsigned i = 0; i < REGIONS; i++)
        for (unsigned j = 0; j < REGION_SIZE; j++) {
            shadows[i][j] = 0;
            missing[i][j] = false;
        }
}

bool engine_is_writable(uint64_t address) {
    int region = region_of(address);
    return region >= 0 && (region % 2 || address - starts[region] < DATA_SIZE);
}

void engine_set_addressable(uint64_t address, bool addressable) {
    int region = region_of(address);
    if (region >= 0)
        missing[region][address - starts[region]] = !addressable;
}

static bool is_addressable(uint64_t address) {
    int region = region_of(address);
    return region >= 0 && !missing[region][address - starts[region]];
}

// ---- the engine ----

uint64_t *tool_registers(void) {
    return IN->gpr;
}

uint64_t tool_flags(void) {
    return IN->flags;
}

uint64_t tool_access_address(const struct tool_access *access) {
    uint64_t address = access->displacement;
    if (access->base >= 0)
        address += IN->gpr[access->base];
    if (access->index >= 0)
        address += IN->gpr[access->index] * access->scale;
    if (access->narrow)
        address = (uint32_t)address;
    return address + (access->segment == 1 ? IN->fs_base : access->segment == 2 ? IN->gs_base : 0);
}

int tool_direction(void) {
    return IN->flags & 0x400 ? -1 : 1;
}

void *tool_thread_state(void) {
    return &engine_shadow;
}

long tool_read(void *to, uint64_t from, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (region_of(from + i) < 0)
            return -EFAULT;
        ((uint8_t *)to)[i] = *(const uint8_t *)(from + i);
    }
    return 0;
}

void tool_with_vectors(tool_function *function, void *argument) {
    function(argument);
}

// ---- shadow memory ----

bool shadow_is_forbidden(uint64_t address) {
    return false;
}

void tool_fault(uint64_t address, bool writes) {
    abort();
}

enum shadow_verdict shadow_check_addressable(uint64_t start, size_t size, uint64_t *bad) {
    for (size_t i = 0; i < size; i++)
        if (!is_addressable(start + i)) {
            *bad = start + i;
            return SHADOW_BAD_ADDRESS;
        }
    return SHADOW_FINE;
}

enum shadow_verdict shadow_check_defined(uint64_t start, size_t size, uint64_t *bad) {
    for (size_t i = 0; i < size; i++)
        if (!is_addressable(start + i) || *engine_shadow_byte(start + i)) {
            *bad = start + i;
            return is_addressable(start + i) ? SHADOW_BAD_VALUE : SHADOW_BAD_ADDRESS;
        }
    return SHADOW_FINE;
}

bool shadow_state(uint64_t address, uint8_t *bits) {
    if (!is_addressable(address))
        return false;
    *bits = *engine_shadow_byte(address);
    return true;
}

void shadow_set_bits(uint64_t address, uint8_t bits) {
    *engine_shadow_byte(address) = bits;
}

// Always the closer look.
bool shadow_read_bits(uint64_t address, unsigned size, void *bits) {
    return false;
}

bool shadow_read_word(uint64_t address, unsigned size, uint64_t *bits) {
    return false;
}

bool shadow_write_bits(uint64_t address, unsigned size, const void *bits) {
    return false;
}

void shadow_make_defined(uint64_t start, size_t size) {
    for (size_t i = 0; i < size; i++)
        *engine_shadow_byte(start + i) = 0;
}

void shadow_copy(uint64_t to, uint64_t from, size_t size) {
    for (size_t i = 0; i < size; i++) {
        size_t at = to <= from ? i : size - 1 - i;
        *engine_shadow_byte(to + at) = *engine_shadow_byte(from + at);
    }
}

uint32_t shadow_origin(uint64_t address) {
    return 1000;
}

void shadow_set_origin(uint64_t address, size_t size, uint32_t origin) {}

// ---- findings ----

void findings_add_access(uint64_t address, size_t size, bool write) {
    engine_findings.reads += !write;
    engine_findings.writes += write;
    engine_findings.address = address;
    engine_findings.size = size;
}

void findings_add_condition(uint32_t origin) {
    engine_findings.conditions++;
    engine_findings.origin = origin;
}

void findings_add_value(unsigned size, uint32_t origin) {
    engine_findings.values++;
    engine_findings.size = size;
    engine_findings.origin = origin;
}
