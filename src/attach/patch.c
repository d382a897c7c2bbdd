// Writing jumps to where functions begin, and taking them away, while all threads stand elsewhere.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/freeze.h"
#include "attach/load.h"
#include "attach/refusal.h"
#include "base/clock.h"
#include "base/text.h"

#define ATTEMPTS   200
#define STEPS_MOST 16
#define STEP_TIME  1000000000ull
#define SEARCHED   65536 // bytes of each stack

struct patching {
    struct load *load;
    const struct wire_attach_patch *patches;
    size_t count;
    uint64_t low, high; // all patches are in here
    uint64_t active_at;
    bool active;
    bool is_cave_left; // no thread is in the cave
    int memory;
};

enum outcome { DONE, NOT_NOW, CHANGED, FAILED };

// ---- where threads are -------------------------------------------------------------------------

// Whether an address is among the bytes of a patch, behind their first.
static bool is_inside(const struct patching *patching, uint64_t address) {
    if (address < patching->low || address >= patching->high)
        return false;
    for (size_t i = 0; i < patching->count; i++)
        if (address > patching->patches[i].at &&
            address < patching->patches[i].at + patching->patches[i].size)
            return true;
    return false;
}

// Executes one instruction. False: the thread has not stopped behind it.
static bool step(struct freeze_thread *thread) {
    uint64_t until = clock_nanoseconds() + STEP_TIME;
    if (ptrace(PTRACE_SINGLESTEP, thread->tid, NULL, NULL) < 0)
        return false;
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)thread->tid, &info, WSTOPPED | WNOHANG | __WALL) < 0 ||
            clock_nanoseconds() > until)
            return false;
        if (info.si_pid == thread->tid) {
            int signal = info.si_status & 0xff;
            // A signal that came meanwhile reaches the thread later.
            if (info.si_status >> 8 == 0 && signal != SIGTRAP)
                thread->signal = signal;
            return signal == SIGTRAP;
        }
    }
}

// The first instructions of functions take no locks and call nobody: they are executed one by one.
static bool leads_out(const struct patching *patching, struct freeze_thread *thread) {
    struct user_regs_struct now;
    for (int steps = 0; steps < STEPS_MOST; steps++) {
        if (ptrace(PTRACE_GETREGS, thread->tid, NULL, &now) < 0)
            return false;
        if (!is_inside(patching, now.rip))
            return true;
        if ((long long)now.orig_rax >= 0 || thread->signal || !step(thread))
            return false;
    }
    return false;
}

// A signal handler that interrupted such a function would return into it.
static bool stack_leads_inside(const struct patching *patching, uint64_t stack) {
    static uint64_t words[SEARCHED / sizeof(uint64_t)];
    struct iovec to = {words, sizeof words}, from = {(void *)(stack & ~7ull), sizeof words};
    ssize_t size = process_vm_readv(patching->load->pid, &to, 1, &from, 1, 0);
    for (size_t i = 0; size > 0 && i < (size_t)size / sizeof *words; i++)
        if (is_inside(patching, words[i]))
            return true;
    return false;
}

static bool are_all_outside(struct patching *patching, struct freeze *freeze) {
    const struct load *load = patching->load;
    patching->is_cave_left = true;
    for (size_t i = 0; i < freeze->count; i++) {
        struct freeze_thread *thread = &freeze->threads[i];
        struct user_regs_struct now;
        if (!thread->stopped)
            continue; // it has ended, or is within the kernel for ever
        if (!leads_out(patching, thread) || ptrace(PTRACE_GETREGS, thread->tid, NULL, &now) < 0 ||
            (patching->active && stack_leads_inside(patching, now.rsp)))
            return false;
        patching->is_cave_left &= now.rip - load->cave >= load->cave_size;
    }
    return true;
}

// ---- writing -----------------------------------------------------------------------------------

static bool write_bytes(const struct patching *patching, uint64_t at, const void *bytes,
                        size_t size) {
    return pwrite(patching->memory, bytes, size, (off_t)at) == (ssize_t)size;
}

// Whether there is what there was, or what Quern has written.
static bool are_as_known(const struct patching *patching) {
    uint8_t now[WIRE_ATTACH_JUMP];
    for (size_t i = 0; i < patching->count; i++) {
        const struct wire_attach_patch *patch = &patching->patches[i];
        if (pread(patching->memory, now, sizeof now, (off_t)patch->at) != sizeof now ||
            (memcmp(now, patch->original, sizeof now) != 0 &&
             memcmp(now, patch->jump, sizeof now) != 0))
            return false;
    }
    return true;
}

static enum outcome write_all(const struct patching *patching) {
    uint32_t active = patching->active;
    struct load *load = patching->load;
    if (!are_as_known(patching))
        return CHANGED;
    bool is_fine = true;
    if (!active)
        is_fine = write_bytes(patching, patching->active_at, &active, sizeof active);
    for (size_t i = 0; i < patching->count && is_fine; i++) {
        const struct wire_attach_patch *patch = &patching->patches[i];
        is_fine = write_bytes(patching, patch->at, active ? patch->jump : patch->original,
                              WIRE_ATTACH_JUMP);
    }
    if (active && is_fine)
        is_fine = write_bytes(patching, patching->active_at, &active, sizeof active);
    if (patching->is_cave_left && load->cave_size &&
        write_bytes(patching, load->cave, load->cave_was, load->cave_size))
        load->cave_size = 0;
    return is_fine ? DONE : FAILED;
}

static enum outcome try_to_patch(struct patching *patching) {
    struct load *load = patching->load;
    struct freeze freeze;
    if (!freeze_begin(&freeze, load->pid))
        return FAILED;
    enum outcome outcome = are_all_outside(patching, &freeze) ? write_all(patching) : NOT_NOW;
    int error = errno;
    uint64_t pause = freeze_end(&freeze);
    load->stops++;
    load->pause = pause > load->pause ? pause : load->pause;
    errno = error;
    return outcome;
}

// ---- the whole ---------------------------------------------------------------------------------

static char *explain(enum outcome outcome, int pid) {
    int error = errno;
    struct text text = {0};
    if (outcome == DONE)
        return NULL;
    char *refusal = outcome == FAILED ? refusal_explain(pid, error) : NULL;
    if (refusal)
        return refusal;
    if (outcome == CHANGED)
        text_string(&text, "another tool has changed the code of its allocator");
    else if (outcome == NOT_NOW)
        text_string(&text, "its threads are within the first instructions of the allocator's "
                           "functions whenever it is stopped");
    else
        text_format(&text, "its code cannot be changed (%s)", strerror(error));
    return text_take(&text);
}

static bool read_patches(struct patching *patching, const struct wire_attach *ready,
                         struct wire_attach_patch *patches) {
    size_t size = ready->patch_count * sizeof *patches;
    struct iovec to = {patches, size}, from = {(void *)ready->patches, size};
    if (!ready->patch_count || ready->patch_count > WIRE_ATTACH_PATCHES ||
        process_vm_readv(patching->load->pid, &to, 1, &from, 1, 0) != (ssize_t)size)
        return false;
    patching->low = UINT64_MAX;
    for (size_t i = 0; i < ready->patch_count; i++) {
        if (patches[i].size < WIRE_ATTACH_JUMP || patches[i].size > 64)
            return false;
        if (patches[i].at < patching->low)
            patching->low = patches[i].at;
        if (patches[i].at + patches[i].size > patching->high)
            patching->high = patches[i].at + patches[i].size;
    }
    return true;
}

char *load_patch(struct load *load, const struct wire_attach *ready, bool active) {
    static struct wire_attach_patch patches[WIRE_ATTACH_PATCHES];
    char path[64];
    struct patching patching = {.load = load,
                                .patches = patches,
                                .count = ready->patch_count,
                                .active_at = ready->active,
                                .active = active};
    if (!read_patches(&patching, ready, patches))
        return base_copy("the recorder in it is damaged");
    snprintf(path, sizeof path, "/proc/%d/mem", load->pid);
    patching.memory = open(path, O_RDWR | O_CLOEXEC);
    enum outcome outcome = patching.memory < 0 ? FAILED : NOT_NOW;
    for (int i = 0; i < ATTEMPTS && outcome == NOT_NOW; i++) {
        if (i)
            nanosleep(&(struct timespec){.tv_nsec = 1000000 + i % 7 * 330000}, NULL);
        outcome = try_to_patch(&patching);
    }
    char *problem = explain(outcome, load->pid);
    if (patching.memory >= 0)
        close(patching.memory);
    return problem;
}
