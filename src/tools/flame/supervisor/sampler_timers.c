#include "tools/flame/supervisor/sampler_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/maps.h"
#include "base/text.h"
#include "base/vector.h"
#include "supervisor/tool.h"
#include "wire/wire_samples.h"

_Static_assert(SAMPLES_REGISTERS == UNWIND_REGISTERS, "both have DWARF's numbers");

// A process that samples itself, and the code that it is known to have.
struct process {
    int pid;
    uint64_t *maps; // hashes of lines
    size_t map_count;
    bool is_gone;
};

struct sampler_timers {
    struct sampler_settings settings;
    int fd;
    struct samples_head *head;
    size_t slot_bytes, size; // not read from the memory, which is the target's as well
    struct process *processes;
    size_t process_count;
    uint64_t taken;
};

// ---- the memory --------------------------------------------------------------------------------

struct sampler_timers *sampler_timers_open(const struct sampler_settings *settings,
                                           char **problem) {
    struct sampler_timers *timers = base_allocate(sizeof *timers);
    size_t stack = settings->stack_bytes & ~(size_t)7;
    *timers = (struct sampler_timers){.settings = *settings};
    size_t frames = settings->interpreters ? SAMPLES_FRAMES * sizeof(struct python_frame) : 0;
    timers->slot_bytes = (sizeof(struct samples_slot) + stack + frames + 63) & ~(size_t)63;
    timers->size = SAMPLES_FIRST + SAMPLES_SLOTS * timers->slot_bytes;
    timers->fd = fd_move_high(memfd_create("quern-samples", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    void *memory = MAP_FAILED;
    if (timers->fd >= 0 && ftruncate(timers->fd, (off_t)timers->size) == 0)
        memory = mmap(NULL, timers->size, PROT_READ | PROT_WRITE, MAP_SHARED, timers->fd, 0);
    if (memory == MAP_FAILED) {
        struct text text = {0};
        text_format(&text, "cannot make room for samples: %s", strerror(errno));
        *problem = text_take(&text);
        if (timers->fd >= 0)
            close(timers->fd);
        free(timers);
        return NULL;
    }
    // The target must not be able to take the memory away.
    fcntl(timers->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    timers->head = memory;
    *timers->head = (struct samples_head){.version = SAMPLES_VERSION,
                                          .slot_bytes = (uint32_t)timers->slot_bytes,
                                          .stack_bytes = (uint32_t)stack,
                                          .frequency = settings->frequency,
                                          .children = settings->children,
                                          .interpreters = settings->interpreters};
    return timers;
}

void sampler_timers_enter(const struct sampler_timers *timers) {
    struct text text = {0};
    fcntl(timers->fd, F_SETFD, 0);
    text_format(&text, "%d", timers->fd);
    setenv(SAMPLES_VARIABLE, text.bytes, 1);
    text_free(&text);
    launch_preload(timers->settings.agent);
}

void sampler_timers_close(struct sampler_timers *timers) {
    atomic_store(&timers->head->ended, 1);
    munmap(timers->head, timers->size);
    close(timers->fd);
    for (size_t i = 0; i < timers->process_count; i++)
        free(timers->processes[i].maps);
    free(timers->processes);
    free(timers);
}

void sampler_timers_switch(struct sampler_timers *timers, bool on) {
    atomic_store(&timers->head->off, !on);
}

// ---- processes ---------------------------------------------------------------------------------

static struct process *find_process(struct sampler_timers *timers, int pid) {
    for (size_t i = 0; i < timers->process_count; i++)
        if (timers->processes[i].pid == pid)
            return &timers->processes[i];
    return NULL;
}

// The process, as one that has just begun.
static struct process *begin_process(struct sampler_timers *timers, int pid) {
    struct process *process = find_process(timers, pid);
    if (!process) {
        process = vector_push(timers->processes, timers->process_count);
        *process = (struct process){.pid = pid};
    }
    process->map_count = 0;
    process->is_gone = false;
    return process;
}

static void mark_gone(struct sampler_timers *timers) {
    for (size_t i = 0; i < timers->process_count; i++)
        timers->processes[i].is_gone = kill(timers->processes[i].pid, 0) < 0 && errno == ESRCH;
}

static void drop_gone(struct sampler_timers *timers, const struct sampler_sink *sink) {
    size_t kept = 0;
    for (size_t i = 0; i < timers->process_count; i++) {
        struct process *process = &timers->processes[i];
        if (process->is_gone) {
            sink->thread_ended(sink->context, process->pid);
            free(process->maps);
        } else {
            timers->processes[kept++] = *process;
        }
    }
    timers->process_count = kept;
}

// ---- maps --------------------------------------------------------------------------------------

static bool is_new(struct process *process, const char *line) {
    uint64_t hash = hash_text(HASH_TEXT_START, line);
    for (size_t i = 0; i < process->map_count; i++)
        if (process->maps[i] == hash)
            return false;
    *vector_push(process->maps, process->map_count) = hash;
    return true;
}

static void tell_line(struct process *process, const struct sampler_sink *sink, const char *line) {
    struct maps_mapping mapping;
    if (!maps_parse(line, &mapping) || !is_new(process, line))
        return;
    sink->map(sink->context,
              &(struct sampler_mapping){.pid = process->pid,
                                        .start = mapping.start,
                                        .end = mapping.end,
                                        .offset = mapping.offset,
                                        .path = *mapping.path ? mapping.path : "//anon"});
}

static void tell_maps(struct sampler_timers *timers, const struct sampler_sink *sink, int pid,
                      const uint8_t *data, size_t size) {
    struct process *process = find_process(timers, pid);
    char *text = base_allocate(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line && process;
         line = strtok_r(NULL, "\n", &rest))
        tell_line(process, sink, line);
    free(text);
}

// ---- slots -------------------------------------------------------------------------------------

static struct samples_slot *slot_at(const struct sampler_timers *timers, size_t number) {
    return (struct samples_slot *)((char *)timers->head + SAMPLES_FIRST +
                                   number * timers->slot_bytes);
}

// The frames behind the stack, if they are all in the slot.
static void take_frames(const struct sampler_timers *timers, const struct samples_slot *slot,
                        struct sampler_sample *sample) {
    size_t count = slot->frame_count, at = (sample->stack_size + 7) & ~(size_t)7;
    size_t most = timers->slot_bytes - sizeof *slot;
    if (count > SAMPLES_FRAMES || at > most || count * sizeof *sample->frames > most - at)
        return;
    sample->frames = (const struct python_frame *)(slot->data + at);
    sample->frame_count = count;
}

static void tell_sample(struct sampler_timers *timers, const struct sampler_sink *sink,
                        const struct samples_slot *slot, size_t size) {
    struct sampler_sample sample = {.pid = slot->pid,
                                    .time = slot->time,
                                    .tid = slot->tid,
                                    .periods = slot->periods ? slot->periods : 1,
                                    .has_registers = true,
                                    .stack = slot->data,
                                    .stack_size = size,
                                    .stack_full = size + 8 > timers->settings.stack_bytes};
    memcpy(sample.registers.value, slot->registers, sizeof slot->registers);
    take_frames(timers, slot, &sample);
    timers->taken++;
    sink->sample(sink->context, &sample);
}

static void tell_slot(struct sampler_timers *timers, const struct sampler_sink *sink,
                      const struct samples_slot *slot) {
    size_t size = slot->size, most = timers->slot_bytes - sizeof *slot;
    int pid = slot->pid;
    char name[17];
    if (size > most)
        size = most;
    switch (slot->kind) {
    case SAMPLES_BEGUN:
        snprintf(name, sizeof name, "%.*s", (int)(size < 16 ? size : 16), (const char *)slot->data);
        begin_process(timers, pid);
        sink->executed(sink->context, pid, name);
        break;
    case SAMPLES_FORKED:
        begin_process(timers, pid);
        sink->forked(sink->context, slot->other, pid);
        break;
    case SAMPLES_MAPS:
        tell_maps(timers, sink, pid, slot->data, size);
        break;
    case SAMPLES_CODE:
        sink->code(sink->context, (const struct python_code *)slot->data, size);
        break;
    case SAMPLES_SAMPLE:
        tell_sample(timers, sink, slot, size);
        break;
    default:
        break;
    }
}

struct ready {
    uint64_t time;
    struct samples_slot *slot;
};

static int by_time(const void *left, const void *right) {
    const struct ready *a = left, *b = right;
    return a->time < b->time ? -1 : a->time > b->time;
}

void sampler_timers_drain(struct sampler_timers *timers, const struct sampler_sink *sink,
                          bool last) {
    struct ready ready[SAMPLES_SLOTS];
    size_t count = 0;
    if (!last)
        mark_gone(timers);
    for (size_t i = 0; i < SAMPLES_SLOTS; i++) {
        struct samples_slot *slot = slot_at(timers, i);
        if (atomic_load(&slot->state) == SAMPLES_FULL)
            ready[count++] = (struct ready){slot->time, slot};
    }
    if (count)
        qsort(ready, count, sizeof *ready, by_time);
    for (size_t i = 0; i < count; i++) {
        tell_slot(timers, sink, ready[i].slot);
        atomic_store(&ready[i].slot->state, SAMPLES_FREE);
    }
    if (!last)
        drop_gone(timers, sink);
}

struct sampler_counts sampler_timers_counts(const struct sampler_timers *timers) {
    return (struct sampler_counts){.lost = atomic_load(&timers->head->lost),
                                   .by_timers = true,
                                   .kernel_is_in = true,
                                   .taken = timers->taken,
                                   .python = atomic_load(&timers->head->python),
                                   .python_state = atomic_load(&timers->head->python_state),
                                   .never_begun = !atomic_load(&timers->head->begun)};
}
