// What events of threads cost: whenever a thread gets a CPU, or leaves it, the kernel looks through
// its events, and sets the timer of its clock or takes it back, which in a virtual machine is the
// host's work. A server that waits for each request pays more for that than for its samples. Where
// threads are seen to come and go so often, and the kernel permits it, events of the CPUs take
// over: a clock that runs on whoever has the CPU, and the news of all programs. What is of others
// is dropped. Of the threads' own events nothing must be left then, so the rings belong to the news
// of the CPUs from the start, which are silent until then.
#include "tools/flame/supervisor/sampler_events.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"

// All rings together, and each of them. An unprivileged user is allowed 512 KiB for each CPU.
#define RINGS_BYTES ((size_t)64 << 20)
#define RING_MOST   ((size_t)8 << 20)
#define RING_LEAST  ((size_t)128 << 10)
// Threads come to CPUs more often than this in a second, and not only because others displace them:
// the events of CPUs take over, of so many at most, since each of them ticks all the time. Until it
// is noticed a server may be slowed down by a third.
#define SWITCHES_MANY 2000
#define WIDE_CPUS     16
#define DEPTH_MAX     16 // of processes that start others
// Nanoseconds between two looks at how often they do: reading a counter interrupts the CPU that
// counts, so looks grow rare while there is nothing to see.
#define WATCH_LEAST 20000000
#define WATCH_MOST  320000000
// Bits of the kernel's PERF_REG_X86_*: ax to ip, and r8 to r15.
#define REGISTER_MASK 0xff01ffull

enum event {
    EVENT_NEWS,       // programs executed, files mapped, processes forked
    EVENT_CLOCK,      // of a thread
    EVENT_WIDE_NEWS,  // of all programs on a CPU
    EVENT_WIDE_CLOCK, // of a CPU
    EVENT_SWITCHES,   // threads leave a CPU, and come back
    EVENT_COUNT,      // of these, without samples
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
        [EVENT_WIDE_NEWS] = PERF_COUNT_SW_DUMMY,
        [EVENT_WIDE_CLOCK] = PERF_COUNT_SW_CPU_CLOCK,
        [EVENT_SWITCHES] = PERF_COUNT_SW_CONTEXT_SWITCHES,
        [EVENT_COUNT] = PERF_COUNT_SW_CONTEXT_SWITCHES,
    };
    bool is_wide = event == EVENT_WIDE_NEWS || event == EVENT_WIDE_CLOCK;
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attributes,
        .config = configurations[event],
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = REGISTER_MASK,
        .sample_stack_user = (uint32_t)sampler->stack_bytes,
        .disabled = 1,
        .enable_on_exec = !is_wide,
        .inherit = !is_wide,
        .exclude_kernel = !kernel,
        .exclude_hv = 1,
        .exclude_idle = is_wide,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    // All records of a ring have one form.
    if (sampler->counts.kernel_stacks) {
        attributes.sample_type |= PERF_SAMPLE_CALLCHAIN;
        attributes.exclude_callchain_user = 1;
    }
    if (event == EVENT_CLOCK || event == EVENT_WIDE_CLOCK) {
        attributes.freq = 1;
        attributes.sample_freq = sampler->frequency;
    }
    if (event == EVENT_SWITCHES) {
        attributes.sample_period = 1;
        attributes.context_switch = 1;
    }
    if (event == EVENT_NEWS || event == EVENT_WIDE_NEWS)
        attributes.mmap = attributes.mmap2 = attributes.comm = attributes.comm_exec =
            attributes.task = 1;
    long fd = syscall(SYS_perf_event_open, &attributes, is_wide ? -1 : pid, cpu, -1,
                      PERF_FLAG_FD_CLOEXEC);
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
        int fds[] = {ring->fd, ring->news, ring->clock, ring->wide, ring->switches};
        munmap(ring->page, page + sampler->ring_bytes);
        for (size_t j = 0; j < sizeof fds / sizeof *fds; j++)
            if (fds[j] >= 0)
                close(fds[j]);
    }
    free(sampler->rings);
    sampler->rings = NULL;
    sampler->ring_count = 0;
}

// The events of a CPU's threads, into a ring that is there. 0, or the error number.
static int open_events(const struct sampler_perf *sampler, pid_t pid, bool kernel,
                       struct ring *ring) {
    if (sampler->is_wide && (ring->news = open_further(sampler, pid, false, EVENT_NEWS, ring)) < 0)
        return errno;
    if ((ring->clock = open_further(sampler, pid, kernel, EVENT_CLOCK, ring)) < 0)
        return errno;
    if (sampler->off_cpu &&
        ((ring->switches = open_further(sampler, pid, true, EVENT_SWITCHES, ring)) < 0 ||
         ioctl(ring->switches, PERF_EVENT_IOC_ID, &ring->switches_id) < 0))
        return errno;
    return ioctl(ring->fd, PERF_EVENT_IOC_ID, &ring->id) < 0 ? errno : 0;
}

// One ring for each CPU. 0, or the error number; *too_large says that the rings were.
static int try_rings(struct sampler_perf *sampler, pid_t pid, bool kernel, bool *too_large) {
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    enum event owner = sampler->is_wide ? EVENT_WIDE_NEWS : EVENT_NEWS;
    sampler->rings = base_allocate((size_t)cpus * sizeof *sampler->rings);
    *too_large = false;
    for (int cpu = 0; cpu < cpus; cpu++) {
        struct ring *ring = &sampler->rings[sampler->ring_count];
        *ring = (struct ring){.fd = open_event(sampler, pid, cpu, false, owner),
                              .cpu = cpu,
                              .news = -1,
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
        int error = open_events(sampler, pid, kernel, ring);
        if (error)
            return error;
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

// Whether events of all CPUs are permitted, and not too many.
static bool may_be_wide(const struct sampler_perf *sampler) {
    if (sysconf(_SC_NPROCESSORS_CONF) > WIDE_CPUS)
        return false;
    int fd = open_event(sampler, -1, 0, sampler->counts.kernel_is_in, EVENT_WIDE_CLOCK);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static struct sampler_perf *new_sampler(const struct sampler_settings *settings) {
    struct sampler_perf *sampler = base_allocate(sizeof *sampler);
    memset(sampler, 0, sizeof *sampler);
    sampler->frequency = settings->frequency;
    sampler->stack_bytes = settings->stack_bytes & ~(size_t)7;
    sampler->off_cpu = settings->off_cpu;
    sampler->counter = -1;
    sampler->waits = -1;
    sampler->watch_ns = WATCH_LEAST;
    sampler->counts.kernel_is_in = !settings->without_kernel;
    sampler->counts.kernel_stacks = settings->kernel_stacks && !settings->without_kernel;
    return sampler;
}

// With time in the kernel if that is wanted and permitted. 0, or the error number.
static int open_permitted(struct sampler_perf *sampler, pid_t pid) {
    sampler->is_wide = may_be_wide(sampler);
    int error = open_rings(sampler, pid, sampler->counts.kernel_is_in);
    if (sampler->counts.kernel_is_in && (error == EACCES || error == EPERM)) {
        // Ordinary users may often sample their own code, but not the kernel's.
        sampler->counts.kernel_is_in = sampler->counts.kernel_stacks = false;
        error = open_rings(sampler, pid, false);
    }
    return error;
}

struct sampler_perf *sampler_perf_open(pid_t pid, const struct sampler_settings *settings,
                                       const struct sampler_sink *sink, char **problem) {
    struct sampler_perf *sampler = new_sampler(settings);
    sampler->sink = *sink;
    sampler->pid = pid;
    int error = open_permitted(sampler, pid);
    if (!error && sampler->is_wide)
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

static void close_event(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

// From the events of threads to those of CPUs. Both give news for a moment, so that none is missed:
// what is told twice is known by its time.
static void hand_over(struct sampler_perf *sampler) {
    bool permitted = true;
    for (size_t i = 0; permitted && i < sampler->ring_count; i++) {
        struct ring *ring = &sampler->rings[i];
        ring->wide =
            open_further(sampler, -1, sampler->counts.kernel_is_in, EVENT_WIDE_CLOCK, ring);
        permitted = ring->wide >= 0;
    }
    for (size_t i = 0; !permitted && i < sampler->ring_count; i++)
        close_event(&sampler->rings[i].wide);
    if (!permitted)
        return;
    for (size_t i = 0; i < sampler->ring_count; i++) {
        ioctl(sampler->rings[i].clock, PERF_EVENT_IOC_DISABLE, 0);
        if (!sampler->is_off)
            ioctl(sampler->rings[i].wide, PERF_EVENT_IOC_ENABLE, 0);
        ioctl(sampler->rings[i].fd, PERF_EVENT_IOC_ENABLE, 0);
    }
    sampler->handed_over = clock_nanoseconds();
    for (size_t i = 0; i < sampler->ring_count; i++) {
        close_event(&sampler->rings[i].clock);
        close_event(&sampler->rings[i].news);
    }
}

static int64_t waits_of_thread(pid_t pid, pid_t tid) {
    char path[64], line[128];
    long long count = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", pid, tid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "voluntary_ctxt_switches: %lld", &count) == 1)
            break;
    if (file)
        fclose(file);
    return count;
}

static int64_t count_waits(pid_t pid, unsigned depth);

static int64_t waits_of_children(pid_t pid, pid_t tid, unsigned depth) {
    char path[64];
    int child;
    int64_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, tid);
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%d", &child) == 1)
        count += count_waits(child, depth + 1);
    if (file)
        fclose(file);
    return count;
}

// How often the threads of a process, and of those that it has started, have left a CPU by
// themselves.
static int64_t count_waits(pid_t pid, unsigned depth) {
    char path[64];
    int64_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *threads = depth < DEPTH_MAX ? opendir(path) : NULL;
    const struct dirent *entry;
    while (threads && (entry = readdir(threads))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (tid > 0)
            count += waits_of_thread(pid, tid) + waits_of_children(pid, tid, depth);
    }
    if (threads)
        closedir(threads);
    return count;
}

// Threads that are only displaced by others, however often, keep their own clocks: those of CPUs
// would count a part of what switching takes as theirs. Who waits is looked up in two rounds.
void sampler_events_watch(struct sampler_perf *sampler, uint64_t now) {
    uint64_t count;
    if (sampler->counter < 0 || now - sampler->at < sampler->watch_ns)
        return;
    if (read(sampler->counter, &count, sizeof count) != sizeof count) {
        stop_watching(sampler);
        return;
    }
    uint64_t switches = count - sampler->watched;
    bool many = sampler->at && switches > SWITCHES_MANY * (now - sampler->at) / 1000000000;
    int64_t waits = many ? count_waits(sampler->pid, 0) : -1;
    if (many && sampler->waits >= 0 && waits - sampler->waits > (int64_t)(switches / 8)) {
        hand_over(sampler);
        stop_watching(sampler);
    }
    if (many)
        sampler->watch_ns = WATCH_LEAST;
    else if (sampler->watch_ns < WATCH_MOST)
        sampler->watch_ns *= 2;
    sampler->waits = waits;
    sampler->watched = count;
    sampler->at = now;
}

// Those of threads go on in their children, and are switched with them.
void sampler_perf_switch(struct sampler_perf *sampler, bool on) {
    sampler->is_off = !on;
    for (size_t i = 0; i < sampler->ring_count; i++) {
        const struct ring *ring = &sampler->rings[i];
        ioctl(ring->wide >= 0 ? ring->wide : ring->clock,
              on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
    }
}

void sampler_events_stop(const struct sampler_perf *sampler) {
    for (size_t i = 0; i < sampler->ring_count; i++)
        if (sampler->rings[i].wide >= 0)
            ioctl(sampler->rings[i].wide, PERF_EVENT_IOC_DISABLE, 0);
}
