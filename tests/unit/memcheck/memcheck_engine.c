#include "memcheck_engine.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/tool.h"
#include "tools/memcheck/target/shadow/origins.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/findings/ledger.h"
#include "tools/memcheck/target/memcheck.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/memcheck/target/track/track.h"

#define AREA      0x201000000000ul
#define AREA_SIZE (64ul << 30)
#define PAGE      4096ul

_Thread_local uint64_t engine_registers[16];
_Thread_local uint64_t engine_stack[16];
_Atomic size_t engine_mapped;
bool engine_raised;
bool track_origins;

uint32_t shadow_origin(uint64_t address) {
    return 0;
}

// ---- memory ------------------------------------------------------------------------------------

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next = AREA;

static void *map_at(uint64_t start, size_t size) {
    void *memory = mmap((void *)start, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return memory;
}

uint64_t tool_map(size_t size, size_t alignment) {
    pthread_mutex_lock(&lock);
    uint64_t start = (next + alignment - 1) & ~(alignment - 1);
    bool fits = start + size <= AREA + AREA_SIZE && start >= next && start + size >= start;
    if (fits)
        next = start + ((size + PAGE - 1) & ~(PAGE - 1));
    pthread_mutex_unlock(&lock);
    if (!fits)
        return 0;
    map_at(start, size);
    engine_mapped += size;
    return start;
}

void tool_unmap(uint64_t start, size_t size) {
    munmap((void *)start, size);
    memset((void *)(start + SHADOW_DISTANCE), 0, size);
    engine_mapped -= size;
}

bool tool_move_pages(uint64_t to, uint64_t from, size_t size) {
    if (mremap((void *)from, size, size, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
               (void *)to) != (void *)to)
        return false;
    memmove((void *)(to + SHADOW_DISTANCE), (void *)(from + SHADOW_DISTANCE), size);
    memset((void *)(from + SHADOW_DISTANCE), 0, size);
    shadow_moved(to, from, size);
    return true;
}

bool tool_has_shadow(uint64_t start, size_t size) {
    return start >= AREA && start + size <= AREA + AREA_SIZE && start + size >= start;
}

bool tool_is_engines(uint64_t address) {
    return false;
}

void tool_fault(uint64_t address, bool writes) {
    abort();
}

void tool_shadow_fill(uint64_t start, uint64_t end, uint8_t value) {
    memset((void *)(start + SHADOW_DISTANCE), value, end - start);
}

void tool_shadow_clear(uint64_t start, uint64_t end) {
    memset((void *)(start + SHADOW_DISTANCE), 0, end - start);
}

bool tool_mapping_at(uint64_t address, struct tool_mapping *mapping) {
    return false;
}

long tool_read(void *to, uint64_t from, size_t size) {
    memcpy(to, (void *)from, size);
    return 0;
}

long tool_write(uint64_t to, const void *from, size_t size) {
    memcpy((void *)to, from, size);
    return 0;
}

// ---- faults ------------------------------------------------------------------------------------

static _Thread_local sigjmp_buf guard;
static _Thread_local volatile bool is_guarded;
static _Thread_local uint64_t fault_address;

static void on_fault(int number, siginfo_t *info, void *context) {
    if (!is_guarded) {
        signal(number, SIG_DFL);
        return;
    }
    fault_address = (uint64_t)info->si_addr;
    siglongjmp(guard, 1);
}

bool tool_try(tool_function *function, void *argument, uint64_t *address) {
    bool was_guarded = is_guarded;
    if (sigsetjmp(guard, 0)) {
        is_guarded = was_guarded;
        *address = fault_address;
        return false;
    }
    is_guarded = true;
    function(argument);
    is_guarded = was_guarded;
    return true;
}

void tool_raise(void) {
    engine_raised = true;
}

void tool_run_itself(void) {}

// ---- the thread --------------------------------------------------------------------------------

uint64_t *tool_registers(void) {
    return engine_registers;
}

uint64_t tool_register(unsigned number) {
    return engine_registers[number];
}

void *tool_thread_state(void) {
    static _Thread_local struct memcheck_thread thread;
    return &thread;
}

uint64_t tool_thread_pointer(void) {
    return 0;
}

int tool_thread_number(void) {
    return 1;
}

bool tool_stack_pointer_around(uint64_t address, uint64_t *stack_pointer) {
    return false;
}

bool tool_own_stack(uint64_t *start, uint64_t *end) {
    return false;
}

size_t tool_stack(uint64_t *pcs, size_t max) {
    size_t count = 0;
    while (count < max && count < 16 && engine_stack[count]) {
        pcs[count] = engine_stack[count];
        count++;
    }
    return count;
}

size_t tool_stack_quickly(uint64_t *pcs, size_t max) {
    return 0;
}

uint32_t tool_stack_recall(void) {
    return 0;
}

void tool_stack_note(const uint64_t *pcs, size_t count, uint32_t value) {}

void tool_with_vectors(tool_function *function, void *argument) {
    function(argument);
}

void tool_say(const char *format, ...) {}
void tool_debug(const char *format, ...) {}

void tool_print(const char *text, bool with_stack) {
    printf("# %s\n", text);
}

// ---- options -----------------------------------------------------------------------------------

static struct { const char *name, *value; } options[16];

void engine_set_option(const char *name, const char *value) {
    unsigned i = 0;
    while (options[i].name && strcmp(options[i].name, name) != 0)
        i++;
    options[i].name = name;
    options[i].value = value;
}

const char *tool_option(const char *name) {
    for (unsigned i = 0; options[i].name; i++)
        if (strcmp(options[i].name, name) == 0)
            return options[i].value;
    return NULL;
}

void engine_start(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    map_at((AREA + SHADOW_DISTANCE) & ~(PAGE - 1), AREA_SIZE + PAGE);
    sigaction(SIGSEGV, &action, NULL);
}

// ---- errors ------------------------------------------------------------------------------------

struct engine_error engine_errors[ENGINE_ERRORS];
unsigned engine_error_count;

void engine_forget_errors(void) {
    engine_error_count = 0;
}

static void note(const char *what, uint64_t address, size_t size, bool writes) {
    pthread_mutex_lock(&lock);
    if (engine_error_count < ENGINE_ERRORS)
        engine_errors[engine_error_count] = (struct engine_error){what, address, size, writes};
    engine_error_count++;
    pthread_mutex_unlock(&lock);
}

void findings_add_access(uint64_t address, size_t size, bool write) {
    note("access", address, size, write);
}

void findings_add_condition(uint32_t origin) {
    note("condition", 0, 0, false);
}

void findings_add_value(unsigned size, uint32_t origin) {
    note("value", 0, size, false);
}

void findings_add_free(uint64_t address, const char *function) {
    note("free", address, 0, false);
}

void findings_add_mismatched_free(uint64_t address) {
    note("mismatch", address, 0, false);
}

void findings_add_resize_to_zero(uint64_t address, const char *function) {
    note("resize to zero", address, 0, false);
}

void findings_add_alignment(uint64_t alignment, uint64_t size, const char *text) {
    note("alignment", alignment, size, false);
}

void findings_add_zero_size(void) {
    note("zero size", 0, 0, false);
}

void findings_add_size_mismatch(uint64_t address, uint64_t size, const char *functions) {
    note("size mismatch", address, size, false);
}

void findings_add_alignment_mismatch(uint64_t address, uint64_t made, uint64_t freed,
                                     const char *functions) {
    note("alignment mismatch", address, made, false);
}

void findings_add_overlap(const char *function, uint64_t to, uint64_t from, size_t size,
                          bool has_size) {
    note("overlap", to, size, false);
}

void findings_add_fishy(const char *function, const char *argument, int64_t value) {
    note("fishy", value, 0, false);
}

struct ledger_sites *ledger_sites(void) {
    return NULL;
}
