// What the clock of threads costs: the kernel sets a timer whenever a thread gets a CPU and takes
// it back when the thread leaves. In a virtual machine the host does both, at some microseconds
// each. A server that waits for each request pays more for that than for its samples. Where threads
// are seen to come and go so often, and the kernel permits it, a clock of each CPU takes over: it
// runs on whoever has the CPU, and samples of other programs are dropped.
#include "supervisor/sampler_parts.h"

#include <cpuid.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

// All rings together, and each of them. An unprivileged user is allowed 512 KiB for each CPU.
#define RINGS_BYTES ((size_t)64 << 20)
#define RING_MOST   ((size_t)8 << 20)
#define RING_LEAST  ((size_t)128 << 10)
// A record is written a moment after the time in it was taken.
#define SETTLING_NS    2000000
#define LONGEST_WAIT   100000000
#define SHORTEST_WAIT  1000000
#define RECORD_MAX     65536
#define SAMPLE_PID_AT  16
#define SAMPLE_TIME_AT 24
#define SAMPLE_REST_AT 40
// Threads come to CPUs more often than this in a second: the clocks of CPUs take over, of so many
// at most, since each of them ticks all the time.
#define SWITCHES_MANY 2000
#define WIDE_CPUS     16
#define WATCH_NS      100000000

// Bits of the kernel's PERF_REG_X86_*: ax to ip, and r8 to r15; in that order they come.
#define REGISTER_MASK 0xff01ffull
static const uint8_t register_order[] = {
    UNWIND_RAX, UNWIND_RBX, UNWIND_RCX, UNWIND_RDX, UNWIND_RSI, UNWIND_RDI,
    UNWIND_RBP, UNWIND_RSP, UNWIND_PC,  UNWIND_R8,  UNWIND_R9,  UNWIND_R10,
    UNWIND_R11, UNWIND_R12, UNWIND_R13, UNWIND_R14, UNWIND_R15,
};
#define REGISTER_COUNT (sizeof register_order / sizeof *register_order)

enum event {
    EVENT_NEWS,     // programs executed, files mapped, processes forked
    EVENT_CLOCK,    // of a thread
    EVENT_WIDE,     // the clock of a CPU
    EVENT_SWITCHES, // threads leave a CPU, and come back
    EVENT_COUNT,    // of these, without samples
};

struct ring {
    int fd; // EVENT_NEWS, to which the ring belongs
    int cpu;
    int clock, wide, switches; // -1: none
    struct perf_event_mmap_page *page;
    uint64_t head; // as read at the start of a round
    uint64_t tail;
};

struct sampler_perf {
    struct sampler_sink sink;
    struct ring *rings;
    size_t ring_count;
    size_t ring_bytes;
    size_t stack_bytes;
    unsigned frequency;
    bool off_cpu;
    int counter;          // EVENT_COUNT; -1: nobody watches
    uint64_t watched, at; // its value, and when it was read
    struct sampler_counts counts;
    _Alignas(8) uint8_t record[RECORD_MAX];
};

// ---- opening ----

static long read_setting(const char *name) {
    char path[64];
    long value = -1;
    snprintf(path, sizeof path, "/proc/sys/kernel/%s", name);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fscanf(file, "%ld", &value) != 1)
            value = -1;
        fclose(file);
    }
    return value;
}

static char *describe_problem(const struct sampler_perf *sampler, int error) {
    struct text text = {0};
    if ((error == EACCES || error == EPERM) && sampler->off_cpu)
        text_format(&text,
                    "--off-cpu=yes needs the kernel's permission to sample it, too "
                    "(kernel.perf_event_paranoid is %ld); run `sysctl "
                    "kernel.perf_event_paranoid=1` as root, or give quern the capability "
                    "CAP_PERFMON",
                    read_setting("perf_event_paranoid"));
    else if (error == EACCES || error == EPERM)
        text_format(&text,
                    "sampling is not permitted here (kernel.perf_event_paranoid is %ld); run "
                    "`sysctl kernel.perf_event_paranoid=1` as root, or give quern the capability "
                    "CAP_PERFMON; in a container, its seccomp profile must allow perf_event_open",
                    read_setting("perf_event_paranoid"));
    else if (error == ENOSYS || error == ENOENT || error == EOPNOTSUPP)
        text_format(&text,
                    "this kernel does not offer perf_event_open (%s); in a container, its seccomp "
                    "profile must allow it",
                    strerror(error));
    else if (error == EINVAL && sampler->frequency > read_setting("perf_event_max_sample_rate"))
        text_format(&text,
                    "--freq=%u is more than the kernel allows; run `sysctl "
                    "kernel.perf_event_max_sample_rate=%u` as root, or sample less often",
                    sampler->frequency, sampler->frequency);
    else
        text_format(&text, "cannot sample: perf_event_open: %s", strerror(error));
    return text_take(&text);
}

static int open_event(const struct sampler_perf *sampler, pid_t pid, int cpu, bool kernel,
                      enum event event) {
    static const uint64_t configurations[] = {
        [EVENT_NEWS] = PERF_COUNT_SW_DUMMY,
        [EVENT_CLOCK] = PERF_COUNT_SW_TASK_CLOCK,
        [EVENT_WIDE] = PERF_COUNT_SW_CPU_CLOCK,
        [EVENT_SWITCHES] = PERF_COUNT_SW_CONTEXT_SWITCHES,
        [EVENT_COUNT] = PERF_COUNT_SW_CONTEXT_SWITCHES,
    };
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attributes,
        .config = configurations[event],
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD |
                       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = REGISTER_MASK,
        .sample_stack_user = (uint32_t)sampler->stack_bytes,
        .disabled = 1,
        .enable_on_exec = event != EVENT_WIDE,
        .inherit = event != EVENT_WIDE,
        .exclude_kernel = !kernel,
        .exclude_hv = 1,
        .exclude_idle = event == EVENT_WIDE,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    if (event == EVENT_CLOCK || event == EVENT_WIDE) {
        attributes.freq = 1;
        attributes.sample_freq = sampler->frequency;
    }
    if (event == EVENT_SWITCHES) {
        attributes.sample_period = 1;
        attributes.context_switch = 1;
    }
    if (event == EVENT_NEWS)
        attributes.mmap = attributes.mmap2 = attributes.comm = attributes.comm_exec =
            attributes.task = 1;
    long fd = syscall(SYS_perf_event_open, &attributes, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd_move_high((int)fd);
}

// A further event that writes into a ring. -1 after an error, with errno.
static int open_further(const struct sampler_perf *sampler, pid_t pid, bool kernel,
                        enum event event, const struct ring *ring) {
    int fd = open_event(sampler, pid, ring->cpu, kernel, event);
    if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static bool map_ring(const struct sampler_perf *sampler, struct ring *ring) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *place =
        mmap(NULL, page + sampler->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    if (place != MAP_FAILED)
        ring->page = place;
    return place != MAP_FAILED;
}

static void close_rings(struct sampler_perf *sampler) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sampler->ring_count; i++) {
        const struct ring *ring = &sampler->rings[i];
        int fds[] = {ring->fd, ring->clock, ring->wide, ring->switches};
        munmap(ring->page, page + sampler->ring_bytes);
        for (size_t j = 0; j < sizeof fds / sizeof *fds; j++)
            if (fds[j] >= 0)
                close(fds[j]);
    }
    free(sampler->rings);
    sampler->rings = NULL;
    sampler->ring_count = 0;
}

// One ring for each CPU. 0, or the error number; *too_large says that the rings were.
static int try_rings(struct sampler_perf *sampler, pid_t pid, bool kernel, bool *too_large) {
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    sampler->rings = base_allocate((size_t)cpus * sizeof *sampler->rings);
    *too_large = false;
    for (int cpu = 0; cpu < cpus; cpu++) {
        struct ring *ring = &sampler->rings[sampler->ring_count];
        *ring = (struct ring){.fd = open_event(sampler, pid, cpu, false, EVENT_NEWS),
                              .cpu = cpu,
                              .clock = -1,
                              .wide = -1,
                              .switches = -1};
        if (ring->fd < 0 && errno == ENODEV)
            continue; // switched off
        if (ring->fd < 0)
            return errno;
        if (!map_ring(sampler, ring)) {
            int error = errno;
            *too_large = true;
            close(ring->fd);
            return error;
        }
        sampler->ring_count++;
        ring->clock = open_further(sampler, pid, kernel, EVENT_CLOCK, ring);
        if (ring->clock < 0)
            return errno;
        if (sampler->off_cpu)
            ring->switches = open_further(sampler, pid, true, EVENT_SWITCHES, ring);
        if (sampler->off_cpu && ring->switches < 0)
            return errno;
    }
    return sampler->ring_count ? 0 : ENODEV;
}

// All rings have one size, so that one interval serves them: the largest that is allowed.
static int open_rings(struct sampler_perf *sampler, pid_t pid, bool kernel) {
    size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);
    sampler->ring_bytes = RING_MOST;
    while (sampler->ring_bytes > RING_LEAST && sampler->ring_bytes * cpus > RINGS_BYTES)
        sampler->ring_bytes /= 2;
    for (;; sampler->ring_bytes /= 2) {
        bool too_large;
        int error = try_rings(sampler, pid, kernel, &too_large);
        if (!error)
            return 0;
        close_rings(sampler);
        if (!too_large || sampler->ring_bytes <= RING_LEAST)
            return error;
    }
}

static struct sampler_perf *new_sampler(const struct sampler_settings *settings) {
    struct sampler_perf *sampler = base_allocate(sizeof *sampler);
    memset(sampler, 0, sizeof *sampler);
    sampler->frequency = settings->frequency;
    sampler->stack_bytes = settings->stack_bytes & ~(size_t)7;
    sampler->off_cpu = settings->off_cpu;
    sampler->counter = -1;
    sampler->counts.kernel_is_in = !settings->without_kernel;
    return sampler;
}

// With time in the kernel if that is wanted and permitted. 0, or the error number.
static int open_permitted(struct sampler_perf *sampler, pid_t pid) {
    int error = open_rings(sampler, pid, sampler->counts.kernel_is_in);
    if (sampler->counts.kernel_is_in && (error == EACCES || error == EPERM)) {
        // Ordinary users may often sample their own code, but not the kernel's.
        sampler->counts.kernel_is_in = false;
        error = open_rings(sampler, pid, false);
    }
    return error;
}

// A hypervisor says that it is there.
static bool is_virtual(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && c >> 31 & 1;
}

struct sampler_perf *sampler_perf_open(pid_t pid, const struct sampler_settings *settings,
                                       const struct sampler_sink *sink, char **problem) {
    struct sampler_perf *sampler = new_sampler(settings);
    sampler->sink = *sink;
    int error = open_permitted(sampler, pid);
    if (!error && is_virtual() && sampler->ring_count <= WIDE_CPUS)
        sampler->counter = open_event(sampler, pid, -1, true, EVENT_COUNT);
    if (!error)
        return sampler;
    *problem = describe_problem(sampler, error);
    sampler_perf_close(sampler);
    return NULL;
}

// Only one event is opened: rings take time to make.
char *sampler_perf_refusal(const struct sampler_settings *settings) {
    struct sampler_perf *sampler = new_sampler(settings);
    int fd = open_event(sampler, 0, 0, settings->off_cpu,
                        settings->off_cpu ? EVENT_SWITCHES : EVENT_CLOCK);
    char *refusal = fd < 0 && errno != ENODEV ? describe_problem(sampler, errno) : NULL;
    if (fd >= 0)
        close(fd);
    free(sampler);
    return refusal;
}

static void stop_watching(struct sampler_perf *sampler) {
    if (sampler->counter >= 0)
        close(sampler->counter);
    sampler->counter = -1;
}

void sampler_perf_close(struct sampler_perf *sampler) {
    stop_watching(sampler);
    close_rings(sampler);
    free(sampler);
}

// ---- clocks ----

static void use_wide_clocks(struct sampler_perf *sampler) {
    bool permitted = true;
    for (size_t i = 0; permitted && i < sampler->ring_count; i++) {
        struct ring *ring = &sampler->rings[i];
        ring->wide = open_further(sampler, -1, sampler->counts.kernel_is_in, EVENT_WIDE, ring);
        permitted = ring->wide >= 0;
    }
    for (size_t i = 0; i < sampler->ring_count; i++) {
        struct ring *ring = &sampler->rings[i];
        if (permitted) {
            ioctl(ring->clock, PERF_EVENT_IOC_DISABLE, 0);
            ioctl(ring->wide, PERF_EVENT_IOC_ENABLE, 0);
        } else if (ring->wide >= 0) {
            close(ring->wide);
            ring->wide = -1;
        }
    }
}

static void watch_switches(struct sampler_perf *sampler, uint64_t now) {
    uint64_t count;
    if (sampler->counter < 0 || now - sampler->at < WATCH_NS)
        return;
    if (read(sampler->counter, &count, sizeof count) != sizeof count) {
        stop_watching(sampler);
        return;
    }
    uint64_t many = SWITCHES_MANY * (now - sampler->at) / 1000000000;
    if (sampler->at && count - sampler->watched > many) {
        use_wide_clocks(sampler);
        stop_watching(sampler);
    }
    sampler->watched = count;
    sampler->at = now;
}

static void stop_wide_clocks(const struct sampler_perf *sampler) {
    for (size_t i = 0; i < sampler->ring_count; i++)
        if (sampler->rings[i].wide >= 0)
            ioctl(sampler->rings[i].wide, PERF_EVENT_IOC_DISABLE, 0);
}

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

static void tell_sample(struct sampler_perf *sampler, size_t size) {
    struct sampler_sample sample = {.pid = half_at(sampler, SAMPLE_PID_AT),
                                    .tid = half_at(sampler, SAMPLE_PID_AT + 4),
                                    .periods = 1};
    // The clock's period is a share of a second in nanoseconds, that of the switches is one of
    // them.
    sample.time = word_at(sampler, SAMPLE_TIME_AT);
    sample.left = sampler->off_cpu && word_at(sampler, SAMPLE_TIME_AT + 8) == 1;
    size_t at = SAMPLE_REST_AT;
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
        sample.stack_full = sample.stack_size + 8 > sampler->stack_bytes;
    }
    sampler->sink.sample(sampler->sink.context, &sample);
}

static void tell(struct sampler_perf *sampler, const struct perf_event_header *header) {
    const struct sampler_sink *sink = &sampler->sink;
    int pid = half_at(sampler, 8);
    switch (header->type) {
    case PERF_RECORD_SAMPLE:
        tell_sample(sampler, header->size);
        break;
    case PERF_RECORD_MMAP2:
        sink->map(sink->context,
                  &(struct sampler_mapping){.pid = pid,
                                            .start = word_at(sampler, 16),
                                            .end = word_at(sampler, 16) + word_at(sampler, 24),
                                            .offset = word_at(sampler, 32),
                                            .path = (const char *)&sampler->record[72]});
        break;
    case PERF_RECORD_COMM:
        if (header->misc & PERF_RECORD_MISC_COMM_EXEC)
            sink->executed(sink->context, pid, (const char *)&sampler->record[16]);
        break;
    case PERF_RECORD_FORK:
        sink->forked(sink->context, half_at(sampler, 12), pid);
        break;
    case PERF_RECORD_EXIT:
        sink->thread_ended(sink->context, pid);
        break;
    case PERF_RECORD_SWITCH:
        sink->switched(sink->context, half_at(sampler, 12), word_at(sampler, 16),
                       !(header->misc & PERF_RECORD_MISC_SWITCH_OUT),
                       header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
        break;
    case PERF_RECORD_LOST:
        sampler->counts.lost += word_at(sampler, 16);
        break;
    case PERF_RECORD_LOST_SAMPLES:
        sampler->counts.lost += word_at(sampler, 8);
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
    size_t at = header.type == PERF_RECORD_SAMPLE ? SAMPLE_TIME_AT : header.size - 8;
    copy_from(sampler, ring, ring->tail + at, time, sizeof *time);
    return true;
}

// Room is left for a stack as large as was asked for, though few are: what is not of it is not
// read.
static void copy_record(struct sampler_perf *sampler, const struct ring *ring, size_t size) {
    size_t stack = SAMPLE_REST_AT + 8 + REGISTER_COUNT * 8 + 8;
    bool has_stack = size > stack;
    copy_from(sampler, ring, ring->tail, sampler->record, has_stack ? stack : size);
    if (!has_stack)
        return;
    const struct perf_event_header *header = (const struct perf_event_header *)sampler->record;
    uint64_t room = word_at(sampler, stack - 8), copied = room;
    if (header->type == PERF_RECORD_SAMPLE && stack + room + 8 <= size) {
        copy_from(sampler, ring, ring->tail + stack + room, &copied, sizeof copied);
        memcpy(&sampler->record[stack + room], &copied, sizeof copied);
        size = stack + (copied < room ? copied : room);
    }
    copy_from(sampler, ring, ring->tail + stack, &sampler->record[stack], size - stack);
}

static void take_record(struct sampler_perf *sampler, struct ring *ring) {
    struct perf_event_header header;
    int pid = 0;
    copy_from(sampler, ring, ring->tail, &header, sizeof header);
    if (header.type == PERF_RECORD_SAMPLE)
        copy_from(sampler, ring, ring->tail + SAMPLE_PID_AT, &pid, sizeof pid);
    bool is_foreign =
        header.type == PERF_RECORD_SAMPLE && !sampler->sink.wants(sampler->sink.context, pid);
    if (!is_foreign)
        copy_record(sampler, ring, header.size);
    ring->tail += header.size;
    if (!is_foreign)
        tell(sampler, &header);
    __atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
}

void sampler_perf_drain(struct sampler_perf *sampler, bool last) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t time_now = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    uint64_t limit = time_now - SETTLING_NS;
    if (last)
        stop_wide_clocks(sampler);
    else
        watch_switches(sampler, time_now);
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
    return wait > LONGEST_WAIT ? LONGEST_WAIT : wait < SHORTEST_WAIT ? SHORTEST_WAIT : wait;
}

struct sampler_counts sampler_perf_counts(const struct sampler_perf *sampler) {
    return sampler->counts;
}
