// The sampler's agent: a library preloaded into a target that runs natively, for machines where the
// kernel does not permit perf_event_open.
//
// Each thread has a timer of its CPU time, which sends it a signal. The handler copies registers
// and the top of the stack into memory that the supervisor shares (wire/wire_samples.h). The
// supervisor walks the stacks and names functions. The agent replaces pthread_create and
// thrd_create to see new threads, and uses pthread_atfork to see forked children.
//
// Rules: the handler does only what is async-signal-safe: raw memory, atomics and system calls. It
// uses a signal that nothing else uses, so it does not disturb the target's own timers. The agent
// removes its variables and the preloaded library from the environment unless children are
// followed.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <threads.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "python/python.h"
#include "base/clock.h"
#include "base/maps.h"
#include "wire/preloaded.h"
#include "wire/wire_samples.h"

#define SIGNAL     SIGSTKFLT
#define EXPORTED   __attribute__((visibility("default")))
#define PAGE       4096ul
#define PIECES_MAX 20
#define RANGES_MAX 1024
// Maps are read again when a sample is in code that is not known, but not more often than this.
#define MAPS_APART 20000000
// Code that is described once; a power of two.
#define CODES_KNOWN 16384
// While sampling is switched off, threads look only so often whether it is on again, in nanoseconds
// of their CPU time.
#define REST_NS 50000000

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static struct samples_head *head;
static pthread_key_t end_key;
static bool has_end_key;

// Of the calling thread. The first access must not allocate: it may be in the handler.
static __thread __attribute__((tls_model("initial-exec"))) struct {
    bool has_timer;
    bool rests; // its timer looks for the end of a pause
    timer_t timer;
    uint64_t sampled;    // periods
    uintptr_t stack_end; // 0: not known
} self;

// CPU time that ended threads had since their last samples, in nanoseconds. The next sample of any
// thread stands for it: threads may be shorter than the time between two ticks.
static _Atomic uint64_t left_over;

// ---- slots -------------------------------------------------------------------------------------

static struct samples_slot *slot_at(uint32_t number) {
    return (struct samples_slot *)((char *)head + SAMPLES_FIRST +
                                   (size_t)number * head->slot_bytes);
}

// A slot to be filled; NULL: none is free.
static struct samples_slot *take_slot(uint32_t kind) {
    for (uint32_t i = 0; i < SAMPLES_SLOTS; i++) {
        struct samples_slot *slot = slot_at(i);
        uint32_t state = SAMPLES_FREE;
        if (atomic_load(&slot->state) != SAMPLES_FREE ||
            !atomic_compare_exchange_strong(&slot->state, &state, SAMPLES_BUSY))
            continue;
        slot->kind = kind;
        slot->pid = getpid();
        slot->tid = (int32_t)syscall(SYS_gettid);
        slot->other = 0;
        slot->periods = 0;
        slot->time = clock_nanoseconds();
        slot->size = slot->frame_count = 0;
        return slot;
    }
    return NULL;
}

static void give_slot(struct samples_slot *slot) {
    atomic_store(&slot->state, SAMPLES_FULL);
}

static size_t slot_room(void) {
    return head->slot_bytes - sizeof(struct samples_slot);
}

// ---- what code is mapped -----------------------------------------------------------------------

// Code that the supervisor has been told of. Written under `maps_busy`; a handler that reads
// while another thread writes tells too much at worst.
static struct range { _Atomic uintptr_t start, end; } ranges[RANGES_MAX];
static _Atomic uint32_t range_count;
static atomic_flag maps_busy = ATOMIC_FLAG_INIT;
static _Atomic uint64_t maps_read;

static bool is_known(uintptr_t address) {
    uint32_t count = atomic_load(&range_count);
    for (uint32_t i = 0; i < count; i++)
        if (address >= atomic_load(&ranges[i].start) && address < atomic_load(&ranges[i].end))
            return true;
    return false;
}

// Keeps a line about code.
static struct samples_slot *take_line(struct samples_slot *slot,
                                      const struct maps_mapping *mapping) {
    size_t size = strlen(mapping->line) + 1;
    uint32_t count = atomic_load(&range_count);
    if (count < RANGES_MAX) {
        atomic_store(&ranges[count].start, mapping->start);
        atomic_store(&ranges[count].end, mapping->end);
        atomic_store(&range_count, count + 1);
    }
    if (slot && slot->size + size > slot_room()) {
        give_slot(slot);
        slot = take_slot(SAMPLES_MAPS);
    }
    if (slot && slot->size + size <= slot_room()) {
        memcpy(slot->data + slot->size, mapping->line, size - 1);
        slot->data[slot->size + size - 1] = '\n';
        slot->size += (uint32_t)size;
    } else {
        atomic_fetch_add(&head->lost, 1);
    }
    return slot;
}

static void tell_maps(void) {
    static struct maps_reader reader; // under maps_busy
    struct maps_mapping mapping;
    if (atomic_flag_test_and_set(&maps_busy))
        return;
    struct samples_slot *slot =
        maps_reader_open(&reader, "/proc/self/maps") ? take_slot(SAMPLES_MAPS) : NULL;
    atomic_store(&range_count, 0);
    while (maps_reader_next(&reader, &mapping))
        if (mapping.executable)
            slot = take_line(slot, &mapping);
    maps_reader_close(&reader);
    if (slot)
        give_slot(slot);
    atomic_store(&maps_read, clock_nanoseconds());
    atomic_flag_clear(&maps_busy);
}

// ---- samples -----------------------------------------------------------------------------------

// The order of unwind.h, which is DWARF's.
static const uint8_t register_order[SAMPLES_REGISTERS] = {
    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};

// A stack that is not the thread's own may end anywhere: the kernel copies what is there, page by
// page.
static size_t copy_foreign(uint8_t *to, uintptr_t from, size_t size) {
    struct iovec pieces[PIECES_MAX];
    struct iovec place = {to, size};
    size_t count = 0;
    for (size_t done = 0; done < size && count < PIECES_MAX; count++) {
        size_t piece = PAGE - (from + done) % PAGE;
        if (piece > size - done)
            piece = size - done;
        pieces[count] = (struct iovec){(void *)(from + done), piece};
        done += piece;
    }
    long got = syscall(SYS_process_vm_readv, getpid(), &place, 1ul, pieces, count, 0ul);
    return got > 0 ? (size_t)got : 0;
}

static size_t copy_stack(uint8_t *to, uintptr_t from, size_t size) {
    if (!self.stack_end || from >= self.stack_end || self.stack_end - from > 1ul << 30)
        return copy_foreign(to, from, size);
    if (size > self.stack_end - from)
        size = self.stack_end - from;
    memcpy(to, (const void *)from, size);
    return size;
}

static uint64_t sampling_period(void) {
    return 1000000000 / head->frequency;
}

// Whole periods; the rest stays.
static uint64_t take_left_over(void) {
    uint64_t period = sampling_period();
    uint64_t time = atomic_exchange(&left_over, 0);
    atomic_fetch_add(&left_over, time % period);
    return time / period;
}

// Every so many nanoseconds of the thread's CPU time; 0: not at all.
static bool set_timer(uint64_t period) {
    struct timespec time = {(time_t)(period / 1000000000), (long)(period % 1000000000)};
    struct itimerspec times = {time, time};
    return timer_settime(self.timer, 0, &times, NULL) == 0;
}

// Of the thread, in nanoseconds.
static uint64_t cpu_time(void) {
    struct timespec time = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// Sampling is switched off, or was until now: no sample stands for this time.
static void rest(bool off) {
    if (self.has_timer && off != self.rests)
        set_timer(off ? REST_NS : sampling_period());
    self.rests = off;
    self.sampled = cpu_time() / sampling_period();
    atomic_store(&left_over, 0);
}

// Numbers of code that the supervisor has been told of. A number that takes the place of another is
// described again when that one comes back.
static _Atomic uint64_t codes[CODES_KNOWN];

static void describe_code(uintptr_t code, uint64_t number) {
    _Atomic uint64_t *known = &codes[number % CODES_KNOWN];
    if (atomic_load(known) == number)
        return;
    struct samples_slot *slot = take_slot(SAMPLES_CODE);
    if (!slot)
        return;
    slot->size =
        (uint32_t)python_describe(code, number, (struct python_code *)slot->data, slot_room());
    if (slot->size)
        atomic_store(known, number);
    give_slot(slot);
}

// Puts frames behind the stack.
static void add_frames(struct samples_slot *slot) {
    python_forget_memory();
    size_t at = (slot->size + 7u) & ~7u;
    size_t room = at < slot_room() ? (slot_room() - at) / sizeof(struct python_frame) : 0;
    slot->frame_count =
        (uint32_t)python_frames((struct python_frame *)(slot->data + at),
                                room < SAMPLES_FRAMES ? room : SAMPLES_FRAMES, describe_code);
    if (slot->frame_count && atomic_load(&head->python_state) == PYTHON_UNSEEN)
        atomic_store(&head->python_state, PYTHON_SEEN);
    slot->time = clock_nanoseconds(); // behind the descriptions
}

static void take_sample(const greg_t *registers, uint32_t periods) {
    if (!is_known((uintptr_t)registers[REG_RIP]) &&
        clock_nanoseconds() - atomic_load(&maps_read) > MAPS_APART)
        tell_maps();
    struct samples_slot *slot = take_slot(SAMPLES_SAMPLE);
    if (slot) {
        slot->periods = periods;
        for (size_t i = 0; i < SAMPLES_REGISTERS; i++)
            slot->registers[i] = (uint64_t)registers[register_order[i]];
        size_t size = head->stack_bytes < slot_room() ? head->stack_bytes : slot_room();
        slot->size =
            (uint32_t)copy_stack(slot->data, (uintptr_t)slot->registers[7] & ~(uintptr_t)7, size);
        if (head->interpreters)
            add_frames(slot);
        give_slot(slot);
    } else {
        atomic_fetch_add(&head->lost, periods);
    }
}

static void on_timer(int number, siginfo_t *info, void *context) {
    int error = errno;
    bool off = atomic_load(&head->off);
    if (atomic_load(&head->ended)) {
        if (self.has_timer)
            set_timer(0);
    } else if (off || self.rests) {
        rest(off);
    } else {
        uint32_t periods = info->si_overrun > 0 ? (uint32_t)info->si_overrun + 1 : 1;
        self.sampled += periods;
        take_sample(((ucontext_t *)context)->uc_mcontext.gregs,
                    periods + (uint32_t)take_left_over());
    }
    errno = error;
}

// ---- threads -----------------------------------------------------------------------------------

static void start_timer(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGNAL};
    event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &self.timer) != 0)
        return;
    self.has_timer = set_timer(sampling_period());
    if (has_end_key)
        pthread_setspecific(end_key, &self);
}

static void end_of_thread(void *value) {
    if (self.has_timer && timer_delete(self.timer) == 0 && !self.rests &&
        !atomic_load(&head->off)) {
        uint64_t taken = cpu_time(), sampled = self.sampled * sampling_period();
        atomic_fetch_add(&left_over, taken > sampled ? taken - sampled : 0);
    }
    self.has_timer = false;
}

// glibc keeps a thread's own structure at the outer end of its stack, whoever has allocated it.
static void begin_thread(void) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0), end = (uintptr_t)pthread_self();
    self.stack_end = end > here && end - here < 1ul << 30 ? end : 0;
    start_timer();
}

struct beginning {
    void *(*routine)(void *);
    void *argument;
};

// What was asked for is jumped to, so that no frame of ours stays on the stack.
static void *run_thread(void *context) {
    struct beginning beginning = *(struct beginning *)context;
    free(context);
    begin_thread();
    return beginning.routine(beginning.argument);
}

static int run_c_thread(void *context) {
    struct beginning beginning = *(struct beginning *)context;
    free(context);
    begin_thread();
    return ((thrd_start_t)(uintptr_t)beginning.routine)(beginning.argument);
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                            void *(*routine)(void *), void *argument) {
    static int (*_Atomic next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!next)
        next = (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))(
            uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
    struct beginning *beginning = head ? malloc(sizeof *beginning) : NULL;
    if (!beginning)
        return next(thread, attributes, routine, argument);
    *beginning = (struct beginning){routine, argument};
    int error = next(thread, attributes, run_thread, beginning);
    if (error)
        free(beginning);
    return error;
}

EXPORTED int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument) {
    static int (*_Atomic next)(thrd_t *, thrd_start_t, void *);
    if (!next)
        next = (int (*)(thrd_t *, thrd_start_t, void *))(uintptr_t)dlsym(RTLD_NEXT, "thrd_create");
    struct beginning *beginning = head ? malloc(sizeof *beginning) : NULL;
    if (!beginning)
        return next(thread, routine, argument);
    *beginning = (struct beginning){(void *(*)(void *))(uintptr_t)routine, argument};
    int error = next(thread, run_c_thread, beginning);
    if (error != thrd_success)
        free(beginning);
    return error;
}

// ---- the process -------------------------------------------------------------------------------

static pid_t forking;

static void before_fork(void) {
    forking = getpid();
}

// Timers are not inherited.
static void after_fork(void) {
    struct samples_slot *slot = take_slot(SAMPLES_FORKED);
    atomic_flag_clear(&maps_busy);
    if (slot) {
        slot->other = forking;
        give_slot(slot);
    }
    self.has_timer = self.rests = false;
    self.sampled = 0;
    atomic_store(&left_over, 0);
    start_timer();
}

static bool map_memory(int fd) {
    struct stat status;
    if (fstat(fd, &status) < 0 || status.st_size <= SAMPLES_FIRST)
        return false;
    struct samples_head *memory =
        mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return false;
    if (memory->version != SAMPLES_VERSION) {
        munmap(memory, (size_t)status.st_size);
        return false;
    }
    head = memory;
    return true;
}

static void tell_program(void) {
    struct samples_slot *slot = take_slot(SAMPLES_BEGUN);
    atomic_fetch_add(&head->begun, 1);
    if (!slot)
        return;
    prctl(PR_GET_NAME, slot->data);
    slot->size = (uint32_t)strnlen((char *)slot->data, 16);
    give_slot(slot);
}

static void find_python(void) {
    enum python_state state;
    uint32_t version = python_find(&state);
    if (!version)
        return;
    atomic_store(&head->python_state, state);
    atomic_store(&head->python, version);
}

__attribute__((constructor)) static void start(void) {
    char **variable = preloaded_variable(SAMPLES_VARIABLE "=");
    int fd = variable ? atoi(*variable + strlen(SAMPLES_VARIABLE "=")) : -1;
    if (fd < 0 || !map_memory(fd))
        return;
    if (!head->children) {
        close(fd);
        preloaded_restore_list();
        preloaded_remove(preloaded_variable(SAMPLES_VARIABLE "="));
    }
    // The name of the program is the last thing on the first thread's stack.
    const char *last = (const char *)getauxval(AT_EXECFN);
    self.stack_end = last ? ((uintptr_t)last + strlen(last) + PAGE) & ~(PAGE - 1) : 0;
    has_end_key = pthread_key_create(&end_key, end_of_thread) == 0;
    pthread_atfork(before_fork, NULL, after_fork);
    struct sigaction action = {.sa_sigaction = on_timer,
                               .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    if (sigaction(SIGNAL, &action, NULL) < 0)
        return;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGNAL);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
    tell_program();
    tell_maps();
    if (head->interpreters)
        find_python();
    start_timer();
}
