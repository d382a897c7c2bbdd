#include <string.h>

#include "base/clock.h"
#include "supervisor/tool.h"
#include "tools/flame/supervisor/sampler_events.h"

// A record is written a moment after the time in it was taken.
#define SETTLING_NS      2000000
#define LONGEST_WAIT_NS  100000000
#define SHORTEST_WAIT_NS 1000000
// Where things are in the kernel's records (perf_event_open(2)): in a sample, with what
// sampler_events.c has asked for, in others, and from the end of any other.
enum {
    SAMPLE_PID_AT = 16,
    SAMPLE_TIME_AT = 24,
    SAMPLE_ID_AT = 32,
    SAMPLE_REST_AT = 40, // the kernel's stack if it was asked for; then registers and stack

    PID_AT = 8,
    FORK_PARENT_AT = 12,
    MMAP_START_AT = 16,
    MMAP_SIZE_AT = 24,
    MMAP_OFFSET_AT = 32,
    MMAP_PATH_AT = 72,
    COMM_NAME_AT = 16,
    LOST_COUNT_AT = 16,
    LOST_SAMPLES_COUNT_AT = 8,
    SWITCH_TID_AT = 12,
    SWITCH_TIME_AT = 16,

    ID_TO_END = 8,
    TIME_TO_END = 16,
};

// The registers of a sample, in the order in which they come.
static const uint8_t register_order[] = {
    UNWIND_RAX, UNWIND_RBX, UNWIND_RCX, UNWIND_RDX, UNWIND_RSI, UNWIND_RDI,
    UNWIND_RBP, UNWIND_RSP, UNWIND_PC,  UNWIND_R8,  UNWIND_R9,  UNWIND_R10,
    UNWIND_R11, UNWIND_R12, UNWIND_R13, UNWIND_R14, UNWIND_R15,
};
// Addresses of the kernel's part of a stack, and those with marks that a record has room for.
#define CHAIN_MAX      512
#define CHAIN_LIMIT    (SAMPLER_RECORD_MAX / 16)
#define REGISTER_COUNT (sizeof register_order / sizeof *register_order)

// ---- records ----

static uint64_t word_at(const struct sampler_perf *sampler, size_t at) {
    uint64_t word;
    memcpy(&word, &sampler->record[at], sizeof word);
    return word;
}

static int half_at(const struct sampler_perf *sampler, size_t at) {
    int half;
    memcpy(&half, &sampler->record[at], sizeof half);
    return half;
}

// Where registers and stack begin: behind the kernel's part of the stack, if it was asked for.
static size_t rest_after_chain(const struct sampler_perf *sampler) {
    if (!sampler->counts.kernel_stacks)
        return SAMPLE_REST_AT;
    uint64_t length = word_at(sampler, SAMPLE_REST_AT);
    return SAMPLE_REST_AT + 8 + 8 * (length < CHAIN_LIMIT ? length : CHAIN_LIMIT);
}

// The kernel's part of the stack. Between addresses are marks that say whose they are; callers are
// known by their return addresses.
static size_t read_chain(const struct sampler_perf *sampler, uint64_t *chain) {
    size_t end = rest_after_chain(sampler), count = 0;
    for (size_t at = SAMPLE_REST_AT + 8; at + 8 <= end && count < CHAIN_MAX; at += 8) {
        uint64_t address = word_at(sampler, at);
        if (address >= SYMBOLS_KERNEL_START && address < (uint64_t)PERF_CONTEXT_MAX)
            chain[count] = address - (count > 0), count++;
    }
    return count;
}

static void tell_sample(struct sampler_perf *sampler, const struct ring *ring, size_t size) {
    struct sampler_sample sample = {.pid = half_at(sampler, SAMPLE_PID_AT),
                                    .tid = half_at(sampler, SAMPLE_PID_AT + 4),
                                    .periods = 1};
    sample.time = word_at(sampler, SAMPLE_TIME_AT);
    sample.left = sampler->off_cpu && word_at(sampler, SAMPLE_ID_AT) == ring->switches_id;
    uint64_t chain[CHAIN_MAX];
    if (sampler->counts.kernel_stacks) {
        sample.kernel = chain;
        sample.kernel_count = read_chain(sampler, chain);
    }
    size_t at = rest_after_chain(sampler);
    uint64_t abi = word_at(sampler, at);
    at += 8;
    sample.has_registers = abi == PERF_SAMPLE_REGS_ABI_64;
    if (abi != PERF_SAMPLE_REGS_ABI_NONE) {
        for (size_t i = 0; i < REGISTER_COUNT; i++)
            sample.registers.value[register_order[i]] = word_at(sampler, at + i * 8);
        at += REGISTER_COUNT * 8;
    }
    uint64_t room = word_at(sampler, at);
    at += 8;
    if (room && at + room + 8 <= size) {
        uint64_t copied = word_at(sampler, at + room);
        sample.stack = &sampler->record[at];
        sample.stack_size = copied < room ? copied : room;
        sample.stack_full = sample.stack_size + 8 > room;
    }
    sampler->sink.sample(sampler->sink.context, &sample);
}

static void tell(struct sampler_perf *sampler, const struct ring *ring,
                 const struct perf_event_header *header) {
    const struct sampler_sink *sink = &sampler->sink;
    int pid = half_at(sampler, PID_AT);
    switch (header->type) {
    case PERF_RECORD_SAMPLE:
        tell_sample(sampler, ring, header->size);
        break;
    case PERF_RECORD_MMAP2:
        sink->map(sink->context,
                  &(struct sampler_mapping){.pid = pid,
                                            .start = word_at(sampler, MMAP_START_AT),
                                            .end = word_at(sampler, MMAP_START_AT) +
                                                   word_at(sampler, MMAP_SIZE_AT),
                                            .offset = word_at(sampler, MMAP_OFFSET_AT),
                                            .path = (const char *)&sampler->record[MMAP_PATH_AT]});
        break;
    case PERF_RECORD_COMM:
        if (header->misc & PERF_RECORD_MISC_COMM_EXEC)
            sink->executed(sink->context, pid, (const char *)&sampler->record[COMM_NAME_AT]);
        break;
    case PERF_RECORD_FORK:
        sink->forked(sink->context, half_at(sampler, FORK_PARENT_AT), pid);
        break;
    case PERF_RECORD_EXIT:
        sink->thread_ended(sink->context, pid);
        break;
    case PERF_RECORD_SWITCH:
        sink->switched(sink->context, half_at(sampler, SWITCH_TID_AT),
                       word_at(sampler, SWITCH_TIME_AT),
                       !(header->misc & PERF_RECORD_MISC_SWITCH_OUT),
                       header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
        break;
    case PERF_RECORD_LOST:
        sampler->counts.lost += word_at(sampler, LOST_COUNT_AT);
        break;
    case PERF_RECORD_LOST_SAMPLES:
        sampler->counts.lost += word_at(sampler, LOST_SAMPLES_COUNT_AT);
        break;
    default:
        break;
    }
}

// ---- rings ----

static void copy_from(const struct sampler_perf *sampler, const struct ring *ring, uint64_t from,
                      void *to, size_t size) {
    const uint8_t *data = (const uint8_t *)ring->page + ring->page->data_offset;
    size_t at = from & (sampler->ring_bytes - 1);
    size_t first = sampler->ring_bytes - at < size ? sampler->ring_bytes - at : size;
    memcpy(to, data + at, first);
    memcpy((uint8_t *)to + first, data, size - first);
}

// The time of a ring's next record; false: there is none.
static bool next_time(const struct sampler_perf *sampler, const struct ring *ring, uint64_t *time) {
    struct perf_event_header header;
    if (ring->tail == ring->head)
        return false;
    copy_from(sampler, ring, ring->tail, &header, sizeof header);
    size_t at = header.type == PERF_RECORD_SAMPLE ? SAMPLE_TIME_AT : header.size - TIME_TO_END;
    copy_from(sampler, ring, ring->tail + at, time, sizeof *time);
    return true;
}

// Room is left for a stack as large as was asked for, though few are: what is not of it is not
// read.
static void copy_record(struct sampler_perf *sampler, const struct ring *ring, size_t size) {
    const struct perf_event_header *header = (const struct perf_event_header *)sampler->record;
    size_t start = size < SAMPLE_REST_AT + 8 ? size : SAMPLE_REST_AT + 8;
    copy_from(sampler, ring, ring->tail, sampler->record, start);
    size_t stack = SAMPLE_REST_AT + 8 + REGISTER_COUNT * 8 + 8;
    if (header->type == PERF_RECORD_SAMPLE && start == SAMPLE_REST_AT + 8)
        stack += rest_after_chain(sampler) - SAMPLE_REST_AT;
    bool has_stack = size > stack;
    copy_from(sampler, ring, ring->tail, sampler->record, has_stack ? stack : size);
    if (!has_stack)
        return;
    uint64_t room = word_at(sampler, stack - 8), copied = room;
    if (header->type == PERF_RECORD_SAMPLE && stack + room + 8 <= size) {
        copy_from(sampler, ring, ring->tail + stack + room, &copied, sizeof copied);
        memcpy(&sampler->record[stack + room], &copied, sizeof copied);
        size = stack + (copied < room ? copied : room);
    }
    copy_from(sampler, ring, ring->tail + stack, &sampler->record[stack], size - stack);
}

// Whether a record is of no use: a sample of another program, or news that the events of CPUs tell,
// of other programs, or those of threads have told or will be.
static bool is_foreign(const struct sampler_perf *sampler, const struct ring *ring,
                       const struct perf_event_header *header) {
    bool is_sample = header->type == PERF_RECORD_SAMPLE;
    bool is_news = header->type == PERF_RECORD_MMAP2 || header->type == PERF_RECORD_COMM ||
                   header->type == PERF_RECORD_FORK || header->type == PERF_RECORD_EXIT;
    uint64_t id, time;
    int pid;
    if (!is_sample && (!is_news || !sampler->is_wide))
        return false;
    if (is_news) {
        copy_from(sampler, ring, ring->tail + header->size - ID_TO_END, &id, sizeof id);
        copy_from(sampler, ring, ring->tail + header->size - TIME_TO_END, &time, sizeof time);
        bool is_late = sampler->handed_over && time > sampler->handed_over;
        if (is_late != (id == ring->id))
            return true;
        if (!is_late)
            return false;
    }
    size_t at = is_sample                          ? SAMPLE_PID_AT
                : header->type == PERF_RECORD_FORK ? FORK_PARENT_AT
                                                   : PID_AT;
    copy_from(sampler, ring, ring->tail + at, &pid, sizeof pid);
    return !sampler->sink.wants(sampler->sink.context, pid);
}

static void take_record(struct sampler_perf *sampler, struct ring *ring) {
    struct perf_event_header header;
    copy_from(sampler, ring, ring->tail, &header, sizeof header);
    bool is_told = !is_foreign(sampler, ring, &header);
    if (is_told)
        copy_record(sampler, ring, header.size);
    ring->tail += header.size;
    if (is_told)
        tell(sampler, ring, &header);
    __atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}

void sampler_perf_drain(struct sampler_perf *sampler, bool last) {
    uint64_t now = clock_nanoseconds();
    uint64_t limit = now - SETTLING_NS;
    if (last)
        sampler_events_stop(sampler);
    else
        sampler_events_watch(sampler, now);
    for (size_t i = 0; i < sampler->ring_count; i++) {
        struct ring *ring = &sampler->rings[i];
        ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    }
    for (;;) {
        struct ring *oldest = NULL;
        uint64_t least = last ? UINT64_MAX : limit;
        for (size_t i = 0; i < sampler->ring_count; i++) {
            uint64_t time;
            if (next_time(sampler, &sampler->rings[i], &time) && time <= least) {
                least = time;
                oldest = &sampler->rings[i];
            }
        }
        if (!oldest)
            return;
        take_record(sampler, oldest);
    }
}

int64_t sampler_perf_interval(const struct sampler_perf *sampler) {
    // A quarter of a ring: room for a supervisor that is late.
    uint64_t samples = sampler->ring_bytes / 4 / (sampler->stack_bytes + 256);
    int64_t wait = (int64_t)(samples * 1000000000 / sampler->frequency);
    if (sampler->counter >= 0 && wait > (int64_t)sampler->watch_ns)
        wait = (int64_t)sampler->watch_ns;
    return wait > LONGEST_WAIT_NS    ? LONGEST_WAIT_NS
           : wait < SHORTEST_WAIT_NS ? SHORTEST_WAIT_NS
                                     : wait;
}

struct sampler_counts sampler_perf_counts(const struct sampler_perf *sampler) {
    return sampler->counts;
}
