#include "tools/memcheck/target/requests.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/tool.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/shadow/frames.h"
#include "tools/memcheck/target/shadow/origins.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/leaks/leaks.h"
#include "tools/memcheck/target/heap/pools.h"
#include "tools/memcheck/target/monitor.h"
#include "tools/memcheck/target/ranges.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/shared/stacks.h"
#include "tools/memcheck/target/track/track.h"
#include "wire/wire.h"

enum request {
    REPLACES_MALLOC = 0x1003,
    COUNT_ERRORS = 0x1201,
    MONITOR_COMMAND = 0x1202,
    CHANGE_OPTION = 0x1203,
    MALLOCLIKE_BLOCK = 0x1301,
    FREELIKE_BLOCK = 0x1302,
    CREATE_POOL = 0x1303,
    DESTROY_POOL = 0x1304,
    POOL_ALLOC = 0x1305,
    POOL_FREE = 0x1306,
    POOL_TRIM = 0x1307,
    MOVE_POOL = 0x1308,
    POOL_CHANGE = 0x1309,
    POOL_EXISTS = 0x130a,
    RESIZEINPLACE_BLOCK = 0x130b,
    STACK_REGISTER = 0x1501,
    STACK_DEREGISTER = 0x1502,
    STACK_CHANGE = 0x1503,
    MAP_IP_TO_SRCLOC = 0x1701,
    CHANGE_ERR_DISABLEMENT = 0x1801,
    MEMCHECK = 'M' << 24 | 'C' << 16,
    MAKE_MEM_NOACCESS = MEMCHECK,
    MAKE_MEM_UNDEFINED,
    MAKE_MEM_DEFINED,
    DISCARD,
    CHECK_MEM_IS_ADDRESSABLE,
    CHECK_MEM_IS_DEFINED,
    DO_LEAK_CHECK,
    COUNT_LEAKS,
    GET_VBITS,
    SET_VBITS,
    CREATE_BLOCK,
    MAKE_MEM_DEFINED_IF_ADDRESSABLE,
    COUNT_LEAK_BLOCKS,
    ENABLE_ADDR_ERRORS,
    DISABLE_ADDR_ERRORS,
};

enum { NOT_DONE = -1 }; // what a request that has no answer returns

// ---- ranges the target has named, and ranges it does not want to hear of ------------------------

struct named {
    struct request_block block;
    bool used;
};
struct ignored {
    uint64_t start, end;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct named *named;
static size_t named_count;
static struct ignored *ignored;
static size_t ignored_count;

static void *resized(void *memory, size_t size) {
    memory = realloc(memory, size);
    if (!memory)
        abort();
    return memory;
}

static uint64_t create_block(uint64_t start, size_t size, uint64_t name) {
    if (!start || !size)
        return NOT_DONE;
    struct named new = {.block = {.start = start, .size = size, .made_at = stack_here()},
                        .used = true};
    // Byte by byte: the name may end before memory that is not there.
    for (size_t i = 0; i + 1 < sizeof new.block.name; i++)
        if (tool_read(&new.block.name[i], name + i, 1) || !new.block.name[i])
            break;
    pthread_mutex_lock(&lock);
    size_t number = 0;
    while (number < named_count && named[number].used)
        number++;
    if (number == named_count)
        named = resized(named, ++named_count * sizeof *named);
    named[number] = new;
    pthread_mutex_unlock(&lock);
    return number;
}

static uint64_t discard(uint64_t number) {
    pthread_mutex_lock(&lock);
    bool found = number < named_count && named[number].used;
    if (found)
        named[number].used = false;
    pthread_mutex_unlock(&lock);
    return !found;
}

static bool describe_chunk(uint64_t address, bool of_metapool, struct request_block *block) {
    struct pool_chunk chunk;
    if (!pools_find(address, of_metapool, &chunk))
        return false;
    *block = (struct request_block){
        .start = chunk.start, .size = chunk.size, .made_at = chunk.made_at, .name = "block"};
    return true;
}

bool requests_describe(uint64_t address, struct request_block *block) {
    bool found = false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; !found && i < named_count; i++) {
        found = named[i].used && address - named[i].block.start < named[i].block.size;
        if (found)
            *block = named[i].block;
    }
    pthread_mutex_unlock(&lock);
    return found || describe_chunk(address, false, block);
}

bool requests_describe_metapool(uint64_t address, struct request_block *block) {
    return describe_chunk(address, true, block);
}

// Cuts the range out of those that are ignored; then adds it, if it is to be.
static bool set_ignored(uint64_t start, size_t size, bool add) {
    if (!size)
        return false;
    uint64_t end = start + size;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < ignored_count;) {
        struct ignored old = ignored[i];
        if (old.end <= start || old.start >= end) {
            i++;
            continue;
        }
        ignored[i] = ignored[--ignored_count];
        struct ignored parts[2] = {{old.start, start}, {end, old.end}};
        for (int part = 0; part < 2; part++) {
            if (parts[part].start >= parts[part].end)
                continue;
            ignored = resized(ignored, (ignored_count + 1) * sizeof *ignored);
            ignored[ignored_count++] = parts[part];
        }
    }
    if (add) {
        ignored = resized(ignored, (ignored_count + 1) * sizeof *ignored);
        ignored[ignored_count++] = (struct ignored){start, end};
    }
    pthread_mutex_unlock(&lock);
    return true;
}

bool requests_ignore(uint64_t address) {
    bool found = false;
    if (!__atomic_load_n(&ignored_count, __ATOMIC_RELAXED))
        return false;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; !found && i < ignored_count; i++)
        found = address - ignored[i].start < ignored[i].end - ignored[i].start;
    pthread_mutex_unlock(&lock);
    return found;
}

void requests_forked(void) {
    pthread_mutex_init(&lock, NULL);
    pools_forked();
    frames_forked();
}

// ---- looking at memory -------------------------------------------------------------------------

static uint64_t check_addressable(uint64_t start, size_t size) {
    uint64_t bad;
    if (range_check(start, size, false, &bad) == SHADOW_FINE)
        return 0;
    findings_add_client_check(bad, FAULT_UNADDRESSABLE, 0);
    return bad;
}

// The first byte that is not addressable, and the first one before it that is undefined.
static uint64_t check_defined(uint64_t start, size_t size) {
    uint64_t first, unaddressable = 0;
    enum shadow_verdict verdict = range_check(start, size, true, &first);
    if (verdict == SHADOW_FINE)
        return 0;
    if (verdict == SHADOW_BAD_VALUE) {
        findings_add_client_check(first, FAULT_UNDEFINED, track_origins ? shadow_origin(first) : 0);
        verdict = range_check(first, start + size - first, false, &unaddressable);
    } else {
        unaddressable = first;
    }
    if (verdict == SHADOW_BAD_ADDRESS)
        findings_add_client_check(unaddressable, FAULT_UNADDRESSABLE, 0);
    return first;
}

enum { BITS_DONE = 1, BITS_UNADDRESSABLE = 3 };

static uint64_t get_bits(uint64_t start, uint64_t to, size_t size) {
    uint64_t bad;
    uint8_t bits;
    if (range_check(start, size, false, &bad) != SHADOW_FINE ||
        range_check(to, size, false, &bad) != SHADOW_FINE)
        return BITS_UNADDRESSABLE;
    for (size_t i = 0; i < size; i++)
        if (!shadow_state(start + i, &bits) || tool_write(to + i, &bits, 1))
            return BITS_UNADDRESSABLE;
    shadow_make_defined(to, size);
    return BITS_DONE;
}

static uint64_t set_bits(uint64_t start, uint64_t from, size_t size) {
    uint64_t bad;
    uint8_t bits;
    if (range_check(start, size, false, &bad) != SHADOW_FINE ||
        range_check(from, size, false, &bad) != SHADOW_FINE)
        return BITS_UNADDRESSABLE;
    for (size_t i = 0; i < size; i++) {
        if (tool_read(&bits, from + i, 1))
            return BITS_UNADDRESSABLE;
        shadow_set_bits(start + i, bits);
    }
    return BITS_DONE;
}

// ---- leaks -------------------------------------------------------------------------------------

static uint64_t do_leak_check(uint64_t mode, uint64_t delta) {
    if (mode > 1)
        tool_say("Warning: unknown memcheck leak search mode %lu: a summary is made", mode);
    if (delta > LEAKS_NEW)
        tool_say("Warning: unknown memcheck leak delta mode %lu: all is shown", delta);
    leaks_check(
        &(struct leak_command){.mode = mode == 0 ? LEAKS_FULL : LEAKS_SUMMARY,
                               .delta = delta > LEAKS_NEW ? LEAKS_ALL : (enum leak_delta)delta,
                               .heuristics = -1});
    return 0;
}

// Lost, possibly lost, reachable, suppressed, as four words of the target. What is suppressed is
// known outside the target only, so suppressed leaks count as what they are.
static uint64_t count_leaks(const uint64_t to[4], const uint64_t amounts[LEAK_KINDS + 1]) {
    uint64_t words[4] = {amounts[0] + amounts[1], amounts[2], amounts[3], amounts[4]};
    for (int i = 0; i < 4; i++) {
        if (tool_write(to[i], &words[i], sizeof words[i]) == 0)
            shadow_make_defined(to[i], sizeof words[i]);
    }
    return 0;
}

// ---- commands that a debugger would give -------------------------------------------------------

// 0: known and done; 1: not known.
static uint64_t monitor_command(uint64_t address) {
    char text[256] = "";
    for (size_t i = 0; i + 1 < sizeof text; i++)
        if (tool_read(&text[i], address + i, 1) || !text[i])
            break;
    if (monitor_perform(text))
        return 0;
    tool_say("command '%s' not recognised", text);
    return 1;
}

// ---- options that the target changes -----------------------------------------------------------

// The supervisor says what becomes of it; the value may be for both sides.
static void change_option(uint64_t address) {
    char word[256] = "";
    struct wire_text header = {0};
    for (size_t i = 0; i + 1 < sizeof word; i++)
        if (tool_read(&word[i], address + i, 1) || !word[i])
            break;
    tool_send(WIRE_OPTION, &header, sizeof header, word, strlen(word) + 1);
    char *value = strchr(word, '=');
    if (!value || strncmp(word, "--", 2) != 0)
        return;
    *value++ = 0;
    leaks_change_option(word + 2, value);
    heap_change_option(word + 2, value);
}

// ---- the requests ------------------------------------------------------------------------------

// A block may lie on a stack, where the frame would be taken for the origin.
static void set_maker_origin(uint64_t start, size_t size) {
    if (track_origins)
        shadow_set_origin(start, size, heap_making_stack());
}

static bool answer_blocks(const uint64_t w[6], uint64_t *result) {
    bool is_about_block =
        w[0] == MALLOCLIKE_BLOCK || w[0] == FREELIKE_BLOCK || w[0] == RESIZEINPLACE_BLOCK;
    *result = 0;
    // Blocks of an allocator that nobody follows: it will hand out the same memory again, unseen.
    if (is_about_block && tool_allocator_is_left_alone())
        return true;
    switch (w[0]) {
    case MALLOCLIKE_BLOCK:
        heap_declare(w[1], w[2], w[3], w[4]);
        set_maker_origin(w[1], w[2]);
        return true;
    case FREELIKE_BLOCK:
        if (!heap_undeclare(w[1], w[2]))
            heap_free(w[1], &(struct heap_claim){HEAP_CLIENT, "free", "", HEAP_ANY, HEAP_ANY});
        return true;
    case RESIZEINPLACE_BLOCK:
        if (!heap_redeclare(w[1], w[2], w[3], w[4]))
            findings_add_free(w[1], "realloc");
        return true;
    case CREATE_POOL:
        pools_create(w[1], w[2], w[3], w[4]);
        return true;
    case DESTROY_POOL:
        pools_destroy(w[1]);
        return true;
    case POOL_ALLOC:
        pools_allocate(w[1], w[2], w[3]);
        set_maker_origin(w[2], w[3]);
        return true;
    case POOL_FREE:
        pools_free(w[1], w[2]);
        return true;
    case POOL_TRIM:
        pools_trim(w[1], w[2], w[3]);
        return true;
    case MOVE_POOL:
        pools_move(w[1], w[2]);
        return true;
    case POOL_CHANGE:
        pools_change(w[1], w[2], w[3], w[4]);
        return true;
    case POOL_EXISTS:
        *result = pools_exists(w[1]);
        return true;
    default:
        return false;
    }
}

static bool answer_memory(const uint64_t w[6], uint64_t *result) {
    *result = NOT_DONE;
    switch (w[0]) {
    case MAKE_MEM_NOACCESS:
        shadow_make_noaccess(w[1], w[2]);
        return true;
    case MAKE_MEM_UNDEFINED:
        shadow_make_undefined(w[1], w[2]);
        if (track_origins)
            shadow_set_origin(w[1], w[2], stack_here() | ORIGIN_REQUEST);
        return true;
    case MAKE_MEM_DEFINED:
        shadow_make_defined(w[1], w[2]);
        return true;
    case MAKE_MEM_DEFINED_IF_ADDRESSABLE:
        shadow_make_defined_if_addressable(w[1], w[2]);
        return true;
    case CREATE_BLOCK:
        *result = create_block(w[1], w[2], w[3]);
        return true;
    case DISCARD:
        *result = discard(w[2]);
        return true;
    case CHECK_MEM_IS_ADDRESSABLE:
        *result = check_addressable(w[1], w[2]);
        return true;
    case CHECK_MEM_IS_DEFINED:
        *result = check_defined(w[1], w[2]);
        return true;
    case GET_VBITS:
        *result = get_bits(w[1], w[2], w[3]);
        return true;
    case SET_VBITS:
        *result = set_bits(w[1], w[2], w[3]);
        return true;
    case ENABLE_ADDR_ERRORS:
        *result = set_ignored(w[1], w[2], false);
        return true;
    case DISABLE_ADDR_ERRORS:
        *result = set_ignored(w[1], w[2], true);
        return true;
    default:
        return false;
    }
}

static bool answer_others(const uint64_t w[6], uint64_t *result) {
    struct leak_totals totals = {0};
    static const char nowhere[64];
    *result = 0;
    switch (w[0]) {
    case REPLACES_MALLOC:
        *result = 1;
        return true;
    case COUNT_ERRORS:
        *result = findings_count();
        return true;
    case MONITOR_COMMAND:
        *result = monitor_command(w[1]);
        return true;
    case STACK_REGISTER:
        *result = frames_register(w[1], w[2]);
        return true;
    case CHANGE_OPTION:
        change_option(w[1]);
        return true;
    case STACK_DEREGISTER:
        frames_deregister(w[1]);
        return true;
    case STACK_CHANGE:
        frames_change(w[1], w[2], w[3]);
        return true;
    case MAP_IP_TO_SRCLOC:
        tool_write(w[2], nowhere, sizeof nowhere);
        shadow_make_defined(w[2], sizeof nowhere);
        return true;
    case CHANGE_ERR_DISABLEMENT:
        findings_disable((int)w[1]);
        return true;
    case DO_LEAK_CHECK:
        *result = do_leak_check(w[1], w[2]);
        return true;
    case COUNT_LEAKS:
        findings_leak_totals(totals.bytes, totals.blocks);
        *result = count_leaks(w + 1, totals.bytes);
        return true;
    case COUNT_LEAK_BLOCKS:
        findings_leak_totals(totals.bytes, totals.blocks);
        *result = count_leaks(w + 1, totals.blocks);
        return true;
    default:
        return false;
    }
}

bool requests_answer(const uint64_t words[6], uint64_t *result) {
    if (answer_blocks(words, result) || answer_memory(words, result)) {
        shadow_has_holes = true;
        return true;
    }
    return answer_others(words, result);
}
