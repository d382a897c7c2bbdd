// Sets up the recorder, before the program's first line or at its first allocation, and again in a
// forked child if forks are followed.
//
// The supervisor passes two open descriptors in $QUERN_RECORDER: "WIRE,OPTIONS". Unless children
// are followed, this code removes that variable, and the library's word in $LD_PRELOAD, from the
// environment. So programs that the target starts run as without Quern.
#include "recorder/recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/glob.h"
#include "wire/preloaded.h"
#include "wire/wire_heap_ring.h"
#include "wire/wire_target.h"

#define VARIABLE   WIRE_HEAP_VARIABLE "="
#define EARLY_ROOM 65536
// Rounds of thread-specific destructors that other libraries get before ours takes effect.
#define END_ROUNDS 3

struct recorder_next recorder_next;
static const volatile uint32_t never;
const volatile uint32_t *recorder_active = &never, *recorder_preloaded = &never;
struct wire_heap_header *recorder_area;
int recorder_depth = 64;

enum phase { PHASE_FIRST, PHASE_RESOLVING, PHASE_WAITING, PHASE_STARTING, PHASE_DONE };
static _Atomic int phase;
static bool follow_children, follow_forks;
static int area_fd = -1;
static pthread_key_t end_key;
static bool end_key_made;
static bool leak_check; // is wanted and has not been yet
static pid_t recorded_pid;
static struct stat wire_identity;
static bool watches_forks;
static bool is_fork; // of a process that was attached to
static bool was_attached; // the area had its place before

// ---- memory ----

static _Alignas(64) char early[EARLY_ROOM];
static _Atomic size_t early_used;

void *recorder_early(size_t size, size_t alignment) {
    if (size > EARLY_ROOM || alignment > 4096)
        return NULL;
    size_t at = atomic_fetch_add(&early_used, (size + alignment + 31) & ~15ul);
    size_t start = ((size_t)early + at + 16 + alignment - 1) & ~(alignment - 1);
    if (start + size > (size_t)early + EARLY_ROOM)
        return NULL;
    ((size_t *)start)[-1] = size;
    return (void *)start;
}

bool recorder_is_early(const void *block) {
    return (const char *)block >= early && (const char *)block < early + EARLY_ROOM;
}

// Not by mmap, which is ours.
static void *map(size_t size, int flags, int fd, size_t offset) {
    long memory = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd,
                          (off_t)offset);
    return memory == -1 ? NULL : (void *)memory;
}

void *recorder_map_private(size_t size) {
    return map(size, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void recorder_unmap_private(void *memory, size_t size) {
    syscall(SYS_munmap, memory, size);
}

// At the place where it was before, if there is one.
static void *map_area(void *place, size_t offset, size_t size) {
    long memory = syscall(SYS_mmap, place, size, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_NORESERVE | (place ? MAP_FIXED : 0), area_fd, offset);
    if (memory == -1)
        return NULL;
    madvise((void *)memory, size, MADV_DONTFORK);
    return (void *)memory;
}

// ---- the area ----

// Rings are reached through one mapping of them all: the descriptor is gone by then, because a
// target may close, count or reuse descriptors as it likes.
static char *rings;

struct wire_heap_ring *recorder_map_ring(uint32_t index) {
    return (struct wire_heap_ring *)(rings + (size_t)index * sizeof(struct wire_heap_ring));
}

// Makes the area and hands it to the supervisor. NULL, or why that was not possible.
static const char *open_area(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < WIRE_HEAP_SIZE)
        return "the limit on file sizes (ulimit -f) is too low";
    area_fd = (int)syscall(SYS_memfd_create, "quern-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (area_fd < 0)
        return "memfd_create failed";
    const char *problem = "there is not enough address space (ulimit -v)";
    bool is_mapped = false;
    if (ftruncate(area_fd, WIRE_HEAP_SIZE) == 0 &&
        fcntl(area_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        void *header = map_area(recorder_area, 0, WIRE_HEAP_RINGS_AT);
        recorder_area = header ? header : recorder_area;
        void *others =
            header ? map_area(rings, WIRE_HEAP_RINGS_AT, WIRE_HEAP_SIZE - WIRE_HEAP_RINGS_AT)
                   : NULL;
        is_mapped = others != NULL;
        rings = others ? others : rings;
    }
    if (is_mapped) {
        problem = NULL;
        recorded_pid = getpid();
        recorder_area->own_size = sizeof(struct recorder_thread);
        recorder_area->version = WIRE_VERSION;
        wire_heap_start_clock(recorder_area);
        atomic_store(&recorder_area->ring_count, 1);
        if (was_attached)
            record_again();
        wire_send_heap(area_fd, WIRE_HEAP_SIZE);
    }
    close(area_fd);
    area_fd = -1;
    return problem;
}

bool recorder_is_heard(void) {
    struct stat now;
    struct pollfd wire = {.fd = wire_fd(), .events = POLLOUT};
    // Whatever has taken the descriptor's number is not ours to ask.
    if (fstat(wire.fd, &now) < 0 || now.st_ino != wire_identity.st_ino ||
        now.st_dev != wire_identity.st_dev)
        return false;
    return poll(&wire, 1, 0) <= 0 || !(wire.revents & (POLLHUP | POLLERR));
}

// ---- the environment ----

static int parse_number(const char **text) {
    int value = 0;
    while (**text >= '0' && **text <= '9')
        value = value * 10 + *(*text)++ - '0';
    if (**text == ',')
        (*text)++;
    return value;
}

// ---- starting ----

static void set_active(bool active) {
    static uint32_t *page;
    if (!page) {
        page = recorder_map_private(4096);
        if (!page || madvise(page, 4096, MADV_WIPEONFORK) < 0)
            return;
    }
    *page = active;
    recorder_active = page;
    recorder_preloaded = families_is_next() ? &never : page;
}

// The program that this process runs.
struct program {
    char path[4096];
    char line[8192]; // its arguments, one after the other
    char *words[256];
};

static void read_program(struct program *program) {
    ssize_t size = readlink("/proc/self/exe", program->path, sizeof program->path - 1);
    program->path[size > 0 ? size : 0] = 0;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    size = fd >= 0 ? read(fd, program->line, sizeof program->line - 1) : 0;
    if (fd >= 0)
        close(fd);
    size_t count = 0;
    char *end = program->line + (size > 0 ? size : 0);
    *end = 0;
    for (char *word = program->line; word < end && count < 255; word += strlen(word) + 1)
        program->words[count++] = word;
    program->words[count] = NULL;
}

// --trace-children-skip and --trace-children-skip-by-arg; the main program is never skipped.
static bool is_skipped(const struct program *program) {
    for (const char *item = NULL; (item = wire_option_next("trace-children-skip", item));)
        if (glob_match_any(item, program->path))
            return true;
    for (const char *item = NULL; (item = wire_option_next("trace-children-skip-by-arg", item));)
        for (char *const *word = program->words + !!program->words[0]; *word; word++)
            if (glob_match_any(item, *word))
                return true;
    return false;
}

static bool wants_leak_check(void) {
    const char *value = wire_option("leak-check");
    return value && strcmp(value, "no") != 0;
}

static bool start_recording(void) {
    const char *problem = open_area();
    if (!problem && !modules_space.state && !modules_start())
        problem = "the loaded libraries cannot be examined";
    if (problem) {
        static char notice[256] = "The heap is not recorded: ";
        strncat(notice, problem, sizeof notice - 64);
        wire_send_notice(0, notice);
        return false;
    }
    families_start();
    interpreters_start();
    recorder_area->libc_heap = modules_allocator_is_libc() && !families_found();
    set_active(true);
    return true;
}

// ---- ending ----

#define ANSWER_WAIT     20000000 // nanoseconds
#define WAITS_PER_CHECK 50

extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);

void recorder_ending(void) {
    // A child of vfork ends with its parent's memory.
    if (!recorder_on() || getpid() != recorded_pid)
        return;
    atomic_store(&recorder_area->ended_at, wire_heap_now(recorder_area));
    if (!leak_check || !recorder_is_heard())
        return;
    leak_check = false;
    wire_send(WIRE_HEAP_ENDING, NULL, 0);
    for (unsigned waits = 1; !atomic_load(&recorder_area->answered); waits++) {
        struct timespec time = {.tv_nsec = ANSWER_WAIT};
        syscall(SYS_futex, &recorder_area->answered, FUTEX_WAIT, 0, &time, NULL, 0);
        if (atomic_load(&recorder_area->abandoned) ||
            (waits % WAITS_PER_CHECK == 0 && !recorder_is_heard()))
            return;
    }
}

static void at_exit(void *argument) {
    recorder_ending();
}

static void at_quick_exit_of_ours(void) {
    recorder_ending();
}

// What is registered first runs last, and what belongs to no library after the destructors of all.
static void watch_exit(void) {
    __cxa_atexit(at_exit, NULL, NULL);
    at_quick_exit(at_quick_exit_of_ours);
}

static void after_fork(void) {
    // What a process that is attached to has mapped for recording is its own: the child's addresses
    // may serve something else by now.
    if (was_attached) {
        recorder_area = NULL;
        rings = NULL;
        recorded_pid = 0;
        was_attached = false;
        is_fork = true;
        record_after_fork();
    }
    if (!wire_identity.st_ino)
        return;
    if (!follow_forks) {
        if (recorder_is_heard())
            close(wire_fd());
        wire_init(-1);
        return;
    }
    recorder_area = NULL;
    rings = NULL;
    wire_send_forked(getppid(), getpid());
    record_after_fork();
    const char *problem = open_area();
    if (problem)
        return;
    modules_after_fork();
    interpreters_after_fork();
    recorder_area->libc_heap = modules_allocator_is_libc() && !families_found();
    recorder_area->is_provisional = !follow_children;
    leak_check = wants_leak_check();
    set_active(true);
}

// A destructor runs again as long as it sets its value again: other libraries' destructors, which
// may still free memory, come first.
static void end_of_thread(void *value) {
    struct recorder_thread *thread = value;
    if (!recorder_on()) {
        // In a forked child there are no rings. Where recording has ended there are empty ones.
        if (getpid() == recorded_pid && was_attached)
            record_thread_ended(thread);
        return;
    }
    if (++thread->rounds < END_ROUNDS)
        pthread_setspecific(end_key, thread);
    else
        record_thread_ended(thread);
}

void recorder_watch_end(struct recorder_thread *thread) {
    if (end_key_made)
        pthread_setspecific(end_key, thread);
}

// What holds for all ways into a process. False: there is nothing that can be done.
static bool take_options(int wire, int config) {
    wire_init(wire);
    if (wire_config_load(config) < 0 || fstat(wire, &wire_identity) < 0)
        return false;
    recorder_depth = (int)wire_option_number("recorder-depth", 64);
    return true;
}

static void watch_threads_and_forks(void) {
    if (!end_key_made)
        end_key_made = pthread_key_create(&end_key, end_of_thread) == 0;
    if (!watches_forks)
        pthread_atfork(NULL, NULL, after_fork);
    watches_forks = true;
}

static void start(const char *value) {
    int wire = parse_number(&value);
    int config = parse_number(&value);
    if (!take_options(wire, config))
        return;
    follow_children = wire_option_yes("trace-children");
    follow_forks = follow_children || wire_option_yes("follow-forks");
    static struct program program;
    read_program(&program);
    // The supervisor's child is the main program.
    bool skipped = getppid() != wire_option_number("supervisor-pid", 0) && is_skipped(&program);
    if (!follow_children || skipped) {
        close(config);
        fcntl(wire, F_SETFD, FD_CLOEXEC);
        preloaded_restore_list();
        preloaded_remove(preloaded_variable(VARIABLE));
    }
    if (skipped) {
        close(wire);
        wire_init(-1);
        return;
    }
    wire_send_hello(getpid(), getppid(), program.path, program.words);
    watch_threads_and_forks();
    leak_check = start_recording() && wants_leak_check();
    if (leak_check || follow_forks)
        watch_exit();
}

// Searched for behind this library; in a process that runs, from its beginning.
static void resolve(void *where) {
    // These first: an allocator that comes to life while the others are looked up needs them.
    recorder_next.mmap = dlsym(where, "mmap");
    recorder_next.munmap = dlsym(where, "munmap");
    recorder_next.mremap = dlsym(where, "mremap");
    recorder_next.brk = dlsym(where, "brk");
    recorder_next.sbrk = dlsym(where, "sbrk");
    recorder_next.malloc = dlsym(where, "malloc");
    recorder_next.calloc = dlsym(where, "calloc");
    recorder_next.realloc = dlsym(where, "realloc");
    recorder_next.free = dlsym(where, "free");
    recorder_next.memalign = dlsym(where, "memalign");
    recorder_next.posix_memalign = dlsym(where, "posix_memalign");
    recorder_next.aligned_alloc = dlsym(where, "aligned_alloc");
    recorder_next.valloc = dlsym(where, "valloc");
    recorder_next.pvalloc = dlsym(where, "pvalloc");
    recorder_next.malloc_usable_size = dlsym(where, "malloc_usable_size");
    recorder_next.dlclose = dlsym(where, "dlclose");
    recorder_next.setname = dlsym(where, "pthread_setname_np");
    recorder_next.prctl = dlsym(where, "prctl");
    recorder_next.exit = dlsym(where, "_exit");
}

bool recorder_resolved(void) {
    int expected = PHASE_FIRST;
    int saved = errno;
    if (atomic_compare_exchange_strong(&phase, &expected, PHASE_RESOLVING)) {
        resolve(RTLD_NEXT);
        atomic_store(&phase, PHASE_WAITING);
    } else if (expected == PHASE_RESOLVING) {
        return false;
    }
    errno = saved;
    return true;
}

static __attribute__((noinline)) bool become_ready(void) {
    int saved = errno;
    if (!recorder_resolved())
        return false;
    // The environment is there once libc has been initialised.
    int expected = PHASE_WAITING;
    if (environ && atomic_compare_exchange_strong(&phase, &expected, PHASE_STARTING)) {
        char **entry = preloaded_variable(VARIABLE);
        if (entry)
            start(*entry + strlen(VARIABLE));
        atomic_store(&phase, PHASE_DONE);
    }
    errno = saved;
    return true;
}

bool recorder_ready(void) {
    if (__builtin_expect(atomic_load_explicit(&phase, memory_order_acquire) == PHASE_DONE, 1))
        return true;
    return become_ready();
}

// ---- in a process that runs ----

const char *recorder_start_attached(int wire, int config, const volatile uint32_t **active) {
    static struct program program;
    if (recorder_on())
        return "it is recorded by Quern already";
    if (was_attached && recorded_pid != getpid())
        return "it is the copy of a process that Quern has attached to, made by clone";
    resolve(RTLD_DEFAULT);
    if (!take_options(wire, config))
        return "its recorder is of another version of Quern; start the process anew, or use that "
               "version";
    read_program(&program);
    wire_send_hello(getpid(), getppid(), program.path, program.words);
    const char *problem = open_area();
    if (is_fork && modules_space.state)
        modules_after_fork();
    else if (modules_space.state)
        modules_tell();
    else if (!problem && !modules_start())
        problem = "the loaded libraries cannot be examined";
    is_fork = false;
    if (problem)
        return problem;
    watch_threads_and_forks();
    was_attached = true;
    recorder_area->libc_heap = modules_allocator_is_libc();
    unsigned count;
    families_attach(&count);
    interpreters_start();
    set_active(false);
    *active = recorder_active;
    leak_check = wants_leak_check();
    return count && *active != &never ? NULL : "no function of its allocator can be diverted";
}

void recorder_stopped(void) {
    if (!recorder_area->ended_at)
        atomic_store(&recorder_area->ended_at, wire_heap_now(recorder_area));
    atomic_store(&recorder_area->abandoned, 1);
}

static void replace(void *memory, size_t size) {
    syscall(SYS_mmap, memory, size, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    madvise(memory, size, MADV_DONTFORK);
}

// A thread may be about to write a last record, however late: it finds memory that nobody reads.
void recorder_end_attached(void) {
    leak_check = false;
    if (recorder_active != &never)
        *(volatile uint32_t *)recorder_active = 0;
    if (recorder_area) {
        atomic_store(&recorder_area->abandoned, 1);
        replace(recorder_area, WIRE_HEAP_RINGS_AT);
    }
    if (rings)
        replace(rings, WIRE_HEAP_SIZE - WIRE_HEAP_RINGS_AT);
    struct stat now;
    if (fstat(wire_fd(), &now) == 0 && now.st_ino == wire_identity.st_ino &&
        now.st_dev == wire_identity.st_dev)
        close(wire_fd());
    wire_init(-1);
    wire_identity = (struct stat){0};
}

__attribute__((constructor)) static void recorder_begin(int argc, char **argv, char **envp) {
    if (!environ)
        environ = envp;
    recorder_ready();
    if (!recorder_on())
        return;
    families_wake_up();
    record_sample();
}

__attribute__((destructor)) static void recorder_end(void) {
    if (recorder_on())
        record_sample();
}
