#include "attach/load.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "attach/place.h"
#include "attach/refusal.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"

#define SEARCH_TIME 10000000000ull // nanoseconds for a thread that can be borrowed
#define LOAD_TIME   30000000000ull // and for the library to be loaded
#define LOOK_PAUSE  500000

// stub.S
extern const uint8_t attach_stub[], attach_stub_end[], attach_parameters[];

struct parameters {
    uint64_t scratch, scratch_size;
    uint64_t functions[PLACE_FUNCTIONS];
    uint64_t flags, signals;
    uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, rip;
    char entry[(sizeof WIRE_ATTACH_ENTRY + 7) / 8 * 8];
    char path[512];
};

// Whether somebody wants this process to end; the caller may have blocked the signals for it.
static bool is_interrupted(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM));
}

static void sleep_for(long nanoseconds) {
    struct timespec time = {.tv_nsec = nanoseconds};
    nanosleep(&time, NULL);
}

// ---- what is known before ----------------------------------------------------------------------

static bool has_xsave(void) {
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_OSXSAVE);
}

static char *check(int pid) {
    char path[64], line[256], state = 0;
    int seccomp = 0;
    char *problem = refusal_check(pid);
    if (problem)
        return problem;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "State: %c", &state);
        sscanf(line, "Seccomp: %d", &seccomp);
    }
    if (file)
        fclose(file);
    if (seccomp)
        return base_copy("a seccomp filter may end it for the system calls that load the recorder "
                         "(docker's default profile is one). quern leaks --pid needs none of them; "
                         "or start the program under Quern: quern heap PROGRAM");
    if (state == 'T' || state == 't')
        return base_copy("it is stopped by a signal; let it go on first (kill -CONT)");
    if (!has_xsave())
        return base_copy("the processor is too old to save the vector registers of a thread");
    return NULL;
}

// ---- borrowing ---------------------------------------------------------------------------------

static int open_memory(int pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    return open(path, O_RDWR | O_CLOEXEC);
}

static void fill(struct parameters *parameters, const struct place *place,
                 const struct borrowed *borrowed, const char *path) {
    const struct user_regs_struct *now = &borrowed->registers;
    *parameters = (struct parameters){
        .scratch = place->scratch,
        .scratch_size = WIRE_ATTACH_SIZE,
        .flags = now->eflags,
        .signals = borrowed->signals,
        .rax = now->rax,
        .rbx = now->rbx,
        .rcx = now->rcx,
        .rdx = now->rdx,
        .rsi = now->rsi,
        .rdi = now->rdi,
        .rbp = now->rbp,
        .rsp = now->rsp,
        .r8 = now->r8,
        .r9 = now->r9,
        .r10 = now->r10,
        .r11 = now->r11,
        .rip = now->rip,
        .entry = WIRE_ATTACH_ENTRY,
    };
    memcpy(parameters->functions, place->functions, sizeof parameters->functions);
    snprintf(parameters->path, sizeof parameters->path, "%s", path);
}

// Sends the thread through the code. The process stands still.
static bool send_through(struct load *load, int memory, const struct place *place,
                         const struct borrowed *borrowed, const char *path) {
    uint8_t code[LOAD_CAVE];
    size_t size = (size_t)(attach_stub_end - attach_stub);
    struct parameters parameters;
    uint64_t all = UINT64_MAX;
    fill(&parameters, place, borrowed, path);
    memcpy(code, attach_stub, size);
    memcpy(code + (attach_parameters - attach_stub), &parameters, sizeof parameters);
    if (pread(memory, load->cave_was, size, (off_t)place->cave) != (ssize_t)size ||
        pwrite(memory, code, size, (off_t)place->cave) != (ssize_t)size)
        return false;
    load->cave_size = size;
    struct user_regs_struct there = borrowed->registers;
    there.rip = place->cave;
    there.orig_rax = UINT64_MAX; // no call that the kernel might restart
    if (ptrace(PTRACE_SETREGS, borrowed->tid, NULL, &there) < 0)
        return false;
    ptrace(PTRACE_SETSIGMASK, borrowed->tid, sizeof all, &all);
    return true;
}

enum outcome { BORROWED, NOT_NOW, FAILED };

static enum outcome try_to_borrow(struct load *load, int memory, const struct place *place,
                                  const char *path) {
    struct freeze freeze;
    struct borrowed borrowed;
    if (!freeze_begin(&freeze, load->pid))
        return FAILED;
    enum outcome outcome = NOT_NOW;
    if (borrow_choose(&place->map, load->pid, &freeze, &borrowed))
        outcome = send_through(load, memory, place, &borrowed, path) ? BORROWED : FAILED;
    int error = errno;
    uint64_t pause = freeze_end(&freeze);
    load->stops++;
    load->pause = pause > load->pause ? pause : load->pause;
    errno = error;
    return outcome;
}

static char *say_failed(int pid) {
    int error = errno;
    char *refusal = refusal_explain(pid, error);
    struct text text = {0};
    if (refusal)
        return refusal;
    text_format(&text, "it cannot be stopped or changed (%s)", strerror(error));
    return text_take(&text);
}

static char *borrow(struct load *load, const struct place *place, const char *path) {
    uint64_t until = clock_nanoseconds() + SEARCH_TIME;
    int memory = open_memory(load->pid);
    enum outcome outcome = memory < 0 ? FAILED : NOT_NOW;
    while (outcome == NOT_NOW && !is_interrupted()) {
        outcome = try_to_borrow(load, memory, place, path);
        if (outcome == NOT_NOW && clock_nanoseconds() > until)
            break;
        if (outcome == NOT_NOW)
            sleep_for(1000000 + (long)(load->stops % 7) * 3300000);
    }
    char *problem = outcome == FAILED ? say_failed(load->pid) : NULL;
    if (memory >= 0)
        close(memory);
    if (outcome != NOT_NOW)
        return problem;
    if (is_interrupted())
        return base_copy("interrupted");
    return base_copy("no thread of it came to a point where it could load the recorder within 10 "
                     "seconds: all were in the allocator, the dynamic linker, or a signal handler");
}

// ---- waiting -----------------------------------------------------------------------------------

bool load_look(const struct load *load, struct wire_attach *now) {
    struct iovec to = {now, sizeof *now}, from = {(void *)load->scratch, sizeof *now};
    *now = (struct wire_attach){0};
    if (process_vm_readv(load->pid, &to, 1, &from, 1, 0) == sizeof *now) {
        now->problem[sizeof now->problem - 1] = 0;
        return true;
    }
    *now = (struct wire_attach){0};
    return kill(load->pid, 0) == 0;
}

static char *say_problem(const struct wire_attach *now) {
    struct text text = {0};
    text_format(&text, "it cannot load the recorder: %s", now->problem);
    for (char *at = text.bytes; *at; at++)
        if ((unsigned char)*at < ' ')
            *at = '?';
    return text_take(&text);
}

static char *wait_for_helper(const struct load *load, int *wire) {
    uint64_t until = clock_nanoseconds() + LOAD_TIME;
    struct wire_attach now;
    struct text text = {0};
    for (;;) {
        if (!load_look(load, &now))
            return base_copy("it has ended");
        if (now.state == WIRE_ATTACH_FAILED)
            return say_problem(&now);
        if (now.borrowed == WIRE_ATTACH_RETURNED && now.error) {
            text_format(&text, "it cannot make a thread (%s)", strerror(now.error));
            return text_take(&text);
        }
        if (now.state == WIRE_ATTACH_WAITING)
            break;
        if (is_interrupted())
            return base_copy("interrupted");
        if (clock_nanoseconds() > until)
            return base_copy("the recorder was not loaded within 30 seconds: some thread holds a "
                             "lock of the dynamic linker or of the allocator for that long. The "
                             "process goes on");
        sleep_for(LOOK_PAUSE);
    }
    *wire = fd_move_high((int)syscall(SYS_pidfd_getfd, load->pidfd, now.wire, 0));
    if (*wire >= 0)
        return NULL;
    text_format(&text, "its end of the wire cannot be had (pidfd_getfd: %s)", strerror(errno));
    return text_take(&text);
}

char *load_begin(struct load *load, int pid, const char *path, int *wire) {
    struct place place = {0};
    *load = (struct load){.pid = pid, .pidfd = -1};
    char *problem = check(pid);
    if (!problem && strlen(path) >= sizeof((struct parameters *)0)->path)
        problem = base_copy("the path of the recorder is too long");
    if (!problem)
        problem = place_find(&place, pid, (size_t)(attach_stub_end - attach_stub));
    if (!problem) {
        load->pidfd = fd_move_high((int)syscall(SYS_pidfd_open, pid, 0));
        load->scratch = place.scratch;
        load->cave = place.cave;
        problem = load->pidfd < 0 ? say_failed(pid) : borrow(load, &place, path);
    }
    place_free(&place);
    return problem ? problem : wait_for_helper(load, wire);
}

void load_end(struct load *load) {
    if (load->pidfd >= 0)
        close(load->pidfd);
    load->pidfd = -1;
}
