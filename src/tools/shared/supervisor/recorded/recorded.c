#include "tools/shared/supervisor/recorded/recorded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/template.h"
#include "base/vector.h"
#include "wire/wire_heap.h"

// How long to wait between looks at the rings: so that about so many words are there at the next
// one if the target goes on as it did. Fewer would mean to be woken for little, more to find
// nothing in the processor's cache any more.
#define GOOD_WORDS    4096
#define SHORTEST_WAIT 200000
#define LONGEST_WAIT  10000000
// Words in a ring after which the next look is due at once.
#define BUSY_WORDS 20000
// Samples of the process: at first so often, later so often that there are some thousands at most.
#define SAMPLE_INTERVAL 10000000
#define SAMPLE_SHARE    2000
#define WATCH_SHARE     200 // of the time at most is spent on looking at threads

static struct recorded_process *find_process(const struct recorded *recorded, int pid) {
    for (size_t i = 0; i < recorded->process_count; i++)
        if (recorded->processes[i]->pid == pid)
            return recorded->processes[i];
    return NULL;
}

// ---- for tools ----

static void on_stack(void *context, uint32_t id, const uint64_t *pcs, size_t count,
                     bool truncated) {
    struct recorded_process *process = context;
    stacks_set(&process->kept_stacks, id, pcs, count, truncated);
}

void recorded_keep_stacks(struct recorded_process *process) {
    process->stacks = &process->kept_stacks;
    heap_source_add(process->source, &(struct heap_sink){.context = process, .stack = on_stack});
}

int recorded_open_file(struct recorded_process *process, unsigned number, char **path) {
    const char *pattern = process->recorded->out_file;
    char *reason = NULL;
    *path = template_expand(pattern, process->pid, 0, &reason);
    int fd = -1;
    if (*path && number) {
        struct text numbered = {0};
        text_format(&numbered, "%s.%u", *path, number);
        free(*path);
        *path = text_take(&numbered);
    }
    if (*path)
        fd = fd_move_high(open(*path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd < 0)
        log_cannot_write(process->log, *path ? *path : pattern, *path ? strerror(errno) : reason);
    free(reason);
    return fd;
}

char *recorded_command(const struct recorded *recorded) {
    struct text command = {0};
    present_command(&command, (const char *const *)recorded->run->request->argv);
    return text_take(&command);
}

// ---- the start ----

void recorded_enter(struct tool_run *run, int wire, int config) {
    const struct recorded *recorded = run->state;
    struct text text = {0};
    launch_keep(wire);
    launch_keep(config);
    text_format(&text, "%d,%d", wire, config);
    setenv(WIRE_HEAP_VARIABLE, text.bytes, 1);
    launch_preload(recorded->recorder);
}

void recorded_started(struct tool_run *run) {
    struct recorded *recorded = run->state;
    recorded->run = run;
    recorded->next_wait = SHORTEST_WAIT;
    if (recorded->note && log_shows(run->log, 0))
        log_print(run->log, run->main_pid, LOG_USER, recorded->note);
}

// ---- samples ----

#define STAT_SIZE 1024

static bool read_kernel_file(int fd, char *text) {
    ssize_t size = fd >= 0 ? pread(fd, text, STAT_SIZE - 1, 0) : -1;
    text[size > 0 ? size : 0] = 0;
    return size > 0;
}

// The page faults in /proc/PID/stat. They stand behind the name, which may hold anything but ends
// at the last ")".
static bool parse_faults(const char *text, struct heap_sample *sample) {
    const char *at = strrchr(text, ')');
    unsigned long long minor, major;
    if (!at || sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %llu %*u %llu", &minor, &major) != 2)
        return false;
    sample->minor_faults = minor;
    sample->major_faults = major;
    return true;
}

// The memory in /proc/PID/statm. What belongs to files or is shared is in the third number.
static bool parse_memory(const char *text, struct heap_sample *sample) {
    unsigned long long resident, shared, page = (unsigned long long)sysconf(_SC_PAGESIZE);
    // A process that has ended has nothing in memory any more.
    if (sscanf(text, "%*u %llu %llu", &resident, &shared) != 2 || !resident)
        return false;
    sample->resident = resident * page;
    sample->anonymous = resident > shared ? (resident - shared) * page : 0;
    return true;
}

static void take_sample(struct recorded_process *process, uint64_t now) {
    char text[STAT_SIZE];
    struct heap_sample sample;
    if (!read_kernel_file(process->stat, text) || !parse_faults(text, &sample))
        return;
    if (read_kernel_file(process->statm, text) && parse_memory(text, &sample))
        heap_source_sample(process->source, &sample);
    uint64_t wait = (now - process->attached) / SAMPLE_SHARE;
    process->next_sample = now + (wait > SAMPLE_INTERVAL ? wait : SAMPLE_INTERVAL);
}

// The first number of a thread's schedstat: nanoseconds on a CPU. 0: the kernel does not say.
static uint64_t cpu_time(void *context, int tid) {
    const struct recorded_process *process = context;
    char text[STAT_SIZE];
    snprintf(text, sizeof text, "%d/schedstat", tid);
    int fd = openat(process->tasks, text, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    read_kernel_file(fd, text);
    close(fd);
    return strtoull(text, NULL, 10);
}

// Looks at all threads, but so seldom that it takes at most one part in WATCH_SHARE of the time.
static void watch_threads(struct recorded_process *process, uint64_t now) {
    if (process->tasks < 0 || now < process->next_watch)
        return;
    heap_source_watch_threads(process->source, cpu_time, process);
    process->next_watch = now + WATCH_SHARE * (clock_nanoseconds() - now);
}

static int open_kernel_file(int pid, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    return fd_move_high(open(path, O_RDONLY | O_CLOEXEC));
}

// ---- processes ----

static void finish_process(struct recorded *recorded, int pid);

// The process hands its area over.
static void attach(struct recorded *recorded, int pid, int fd, uint64_t size) {
    const struct tool_run *run = recorded->run;
    finish_process(recorded, pid);
    const char *problem;
    struct heap_source *source = heap_source_open(fd, size, &problem);
    if (!source) {
        log_complain("the recording of process %d cannot be read: %s", pid, problem);
        return;
    }
    recorded->main_seen |= pid == run->main_pid;
    struct recorded_process *process = base_allocate(sizeof *process);
    *process = (struct recorded_process){.pid = pid,
                                         .log = run->log,
                                         .recorded = recorded,
                                         .source = source,
                                         .stat = -1,
                                         .statm = -1,
                                         .tasks = -1,
                                         .attached = clock_nanoseconds()};
    // A translated process has the engine's memory as well as its own.
    if (recorded->recorder) {
        process->stat = open_kernel_file(pid, "stat");
        process->statm = open_kernel_file(pid, "statm");
        process->tasks = open_kernel_file(pid, "task");
    }
    process->names = heap_names_new(run->symbols, pid, &recorded->names);
    heap_source_note_frees(source, run->request->attach_pid && recorded->census != CENSUS_NO);
    recorded_interpreter_start(process);
    recorded->tool->start(process);
    *vector_push(recorded->processes, recorded->process_count) = process;
}

void recorded_attached(struct tool_run *run) {
    struct recorded_process *process = find_process(run->state, run->main_pid);
    if (process && process->recorded->census != CENSUS_NO)
        recorded_look_before(process);
}

bool recorded_message(struct tool_run *run, struct followed *process,
                      const struct wire_message *message) {
    struct recorded_process *known = find_process(run->state, process->pid);
    if (message->type == WIRE_HEAP)
        attach(run->state, process->pid, message->fd, message->heap->size);
    else if (message->type == WIRE_HEAP_ENDING && known)
        recorded_ending(known);
    else
        return false;
    return true;
}

void recorded_mapped(struct tool_run *run, struct followed *followed,
                     const struct wire_module_map *map) {
    struct recorded_process *process = find_process(run->state, followed->pid);
    if (!process)
        return;
    struct heap_mapping mapping = {
        .start = map->start, .end = map->end, .offset = map->offset, .path = map->path};
    struct stat file;
    if (stat(map->path, &file) == 0) {
        mapping.device = file.st_dev;
        mapping.inode = file.st_ino;
        mapping.size = (uint64_t)file.st_size;
        mapping.changed_seconds = (uint64_t)file.st_mtim.tv_sec;
        mapping.changed_nanoseconds = (uint32_t)file.st_mtim.tv_nsec;
    }
    heap_source_mapping(process->source, &mapping);
}

static void complain_if_broken(struct recorded_process *process, bool was) {
    if (!was && heap_source_broken(process->source))
        log_complain("process %d has damaged what it shares with Quern; it is recorded up to there",
                     process->pid);
}

// `words` were in the fullest ring, this many nanoseconds after the last look.
static int64_t choose_wait(const struct recorded *recorded, size_t words, uint64_t passed) {
    if (words >= BUSY_WORDS)
        return 0;
    int64_t wait = words ? (int64_t)(passed * GOOD_WORDS / words) : 2 * recorded->next_wait;
    return wait < SHORTEST_WAIT ? SHORTEST_WAIT : wait > LONGEST_WAIT ? LONGEST_WAIT : wait;
}

void recorded_drain(struct tool_run *run) {
    struct recorded *recorded = run->state;
    size_t words = 0;
    uint64_t now = clock_nanoseconds();
    for (size_t i = 0; i < recorded->process_count; i++) {
        struct recorded_process *process = recorded->processes[i];
        bool was = heap_source_broken(process->source);
        size_t got = heap_source_drain(process->source, false);
        words = got > words ? got : words;
        complain_if_broken(process, was);
        recorded_take_before(process, false);
        if (now >= process->next_sample) {
            take_sample(process, now);
            watch_threads(process, clock_nanoseconds());
        }
        if (recorded->tool->drained)
            recorded->tool->drained(process, now);
    }
    recorded->next_wait = choose_wait(recorded, words, now - recorded->last_drain);
    recorded->last_drain = now;
}

int64_t recorded_timeout(struct tool_run *run) {
    const struct recorded *recorded = run->state;
    return recorded->process_count ? recorded->next_wait : -1;
}

static void say_what_was_seen(struct recorded_process *process) {
    struct heap_source_counts counts = heap_source_counts(process->source);
    if (log_shows(process->log, 1))
        log_format(process->log, process->pid, LOG_DEBUGGING,
                   "heap events: %llu allocations, %llu releases, %llu resizes; %llu releases of "
                   "unknown blocks, %llu allocations of known ones",
                   (unsigned long long)counts.allocated, (unsigned long long)counts.freed,
                   (unsigned long long)counts.resized, (unsigned long long)counts.unknown,
                   (unsigned long long)counts.repaired);
    recorded_interpreter_say(process);
    if (counts.missed)
        log_format(process->log, process->pid, LOG_USER, "%llu heap events could not be recorded",
                   (unsigned long long)counts.missed);
}

static void free_process(struct recorded_process *process) {
    process->recorded->tool->release(process);
    const int files[] = {process->stat, process->statm, process->tasks};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] >= 0)
            close(files[i]);
    before_free(process->before);
    recorded_interpreter_end(process);
    free(process->holders);
    free(process->stack_pointers);
    heap_names_free(process->names);
    stacks_free(&process->kept_stacks);
    heap_source_free(process->source);
    free(process);
}

// Processes that are left are the collector's to report.
void recorded_release(struct recorded *recorded) {
    for (size_t i = 0; i < recorded->process_count; i++)
        free_process(recorded->processes[i]);
    free(recorded->processes);
    interpreted_free(&recorded->interpreted);
    suppressions_free(recorded->leaks.suppressions);
    free(recorded->recorder);
}

// The process has ended or runs another program now: takes the rest and reports.
static void finish_process(struct recorded *recorded, int pid) {
    struct recorded_process *process = find_process(recorded, pid);
    if (!process)
        return;
    bool was = heap_source_broken(process->source);
    heap_source_drain(process->source, true);
    recorded_take_before(process, true);
    complain_if_broken(process, was);
    heap_source_end(process->source);
    if (!heap_source_is_void(process->source)) {
        say_what_was_seen(process);
        recorded->tool->report(process);
    }
    for (size_t i = 0; i < recorded->process_count; i++) {
        if (recorded->processes[i] == process) {
            recorded->processes[i] = recorded->processes[--recorded->process_count];
            break;
        }
    }
    free_process(process);
}

void recorded_began(struct tool_run *run, struct followed *process) {
    finish_process(run->state, process->pid);
}

// The main process has ended without the words that a recorded one ends with, and under another
// name: it has executed another program, as shims do, and the recording is about the shim.
static void hint_at_exec(const struct tool_run *run, const struct followed *process) {
    const struct recorded_process *recorded = find_process(run->state, process->pid);
    const char *program = run->request->program, *slash = strrchr(program, '/');
    size_t length = sizeof process->ended_as - 1;
    if (process->pid != run->main_pid || !recorded || !process->ended_as[0] ||
        heap_source_has_ended(recorded->source) ||
        strncmp(process->ended_as, slash ? slash + 1 : program, length) == 0)
        return;
    log_format(run->log, process->pid, LOG_USER,
               "\nThe program executed another one, %s, which was not followed "
               "(--trace-children=yes follows it)",
               process->ended_as);
}

void recorded_ended(struct tool_run *run, struct followed *process) {
    const struct recorded *recorded = run->state;
    if (log_shows(run->log, 0))
        hint_at_exec(run, process);
    finish_process(run->state, process->pid);
    if (process->pid == run->main_pid && !recorded->main_seen)
        log_print(run->log, run->main_pid, LOG_USER,
                  "The program was not recorded: it is statically linked, or was started in a way\n"
                  "that does not allow LD_PRELOAD");
}

void recorded_finish(struct tool_run *run) {
    struct recorded *recorded = run->state;
    while (recorded->process_count)
        finish_process(recorded, recorded->processes[0]->pid);
}

bool recorded_failed(struct tool_run *run) {
    const struct recorded *recorded = run->state;
    return recorded->leaks_failed;
}
