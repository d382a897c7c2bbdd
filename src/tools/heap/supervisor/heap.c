#include "tools/heap/supervisor/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/template.h"
#include "base/text.h"
#include "report/dhat/native.h"
#include "report/heap/text.h"
#include "report/massif/out.h"
#include "supervisor/budgets.h"
#include "supervisor/diagnosis.h"
#include "tools/heap/supervisor/parts.h"
#include "supervisor/log.h"
#include "supervisor/present.h"

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

static const struct supervisor_request *request;
static struct symbols *symbols;
static int main_pid;
static bool main_seen;
static struct heap_process **processes;
static size_t process_count;
static int64_t next_wait = SHORTEST_WAIT;

const struct heap_settings *heap_settings(void) {
    return &request->heap;
}

size_t heap_process_count(void) {
    return process_count;
}

struct heap_process *heap_process_at(size_t index) {
    return processes[index];
}

void heap_prepare(const struct supervisor_request *run, struct symbols *names, int pid) {
    request = run;
    symbols = names;
    main_pid = pid;
    if (heap_settings()->note && log_shows(0))
        log_print(pid, LOG_USER, heap_settings()->note);
}

struct symbols *heap_symbols(void) {
    return symbols;
}

struct heap_process *heap_process_find(int pid) {
    for (size_t i = 0; i < process_count; i++)
        if (processes[i]->pid == pid)
            return processes[i];
    return NULL;
}

// ---- massif ----

static bool is_ignored(void *context, uint32_t stack) {
    struct heap_process *process = context;
    return heap_names_ignored(process->names, stacks_get(&process->stacks, stack));
}

static void on_stack(void *context, uint32_t id, const uint64_t *pcs, size_t count,
                     bool truncated) {
    struct heap_process *process = context;
    stacks_set(&process->stacks, id, pcs, count, truncated);
}

static void start_massif(struct heap_process *process) {
    struct massif_options options = heap_settings()->massif;
    if (heap_settings()->names.ignore_fn_count)
        options.ignore = is_ignored;
    options.ignore_context = process;
    process->massif = massif_new(&options);
    struct heap_sink sink;
    heap_source_add(process->source, &(struct heap_sink){.context = process, .stack = on_stack});
    massif_sink(process->massif, &sink);
    heap_source_add(process->source, &sink);
    if (!budgets_any(request->budgets.limits))
        return;
    summary_sink(&process->summary, &sink);
    heap_source_add(process->source, &sink);
}

// Opens the file that the tool's option names, for writing; with a number at the end unless that is
// 0. -1 after a message; *path is to be freed.
static int open_out_file(int pid, unsigned number, char **path) {
    char *reason = NULL;
    *path = template_expand(heap_settings()->out_file, pid, 0, &reason);
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
        log_cannot_write(*path ? *path : heap_settings()->out_file,
                         *path ? strerror(errno) : reason);
    free(reason);
    return fd;
}

char *heap_write_massif(struct heap_process *process, unsigned number) {
    char *path;
    int fd = open_out_file(process->pid, number, &path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file) {
        free(path);
        return NULL;
    }
    struct text command = {0};
    present_command(&command, (const char *const *)request->argv);
    massif_out(file, process->massif, &process->stacks, process->names,
               &(struct massif_out_options){
                   .description = heap_settings()->description,
                   .command = command.bytes,
                   .time_unit = heap_settings()->massif.time_unit,
                   .is_pages = heap_settings()->massif.is_pages,
                   .threshold = heap_settings()->threshold,
               });
    text_free(&command);
    bool failed = ferror(file);
    if (fclose(file) == 0 && !failed)
        return path;
    log_cannot_write(path, strerror(errno));
    free(path);
    return NULL;
}

// How the heap grew is only in the file.
static void check_massif(struct heap_process *process, const char *path) {
    struct budget_numbers numbers = {0};
    struct massif_file file = {0};
    FILE *in = request->budgets.limits[BUDGET_GROWTH].is_set && path ? fopen(path, "re") : NULL;
    if (!budgets_any(request->budgets.limits))
        return;
    if (in) {
        char *problem = massif_file_read(in, &file);
        if (!problem)
            budgets_massif(&numbers, &file);
        free(problem);
        massif_file_free(&file);
        fclose(in);
    }
    budgets_recorded(&numbers, &request->budgets, &process->summary, NULL);
    budgets_check(&request->budgets, process->pid, &numbers);
}

// ---- dhat ----

static void start_dhat(struct heap_process *process) {
    struct heap_sink sink;
    process->lifetimes = base_allocate(sizeof *process->lifetimes);
    *process->lifetimes = (struct lifetimes){.is_dhat = true, .brief = DHAT_NATIVE_BRIEF * 1000};
    heap_source_add(process->source, &(struct heap_sink){.context = process, .stack = on_stack});
    lifetimes_sink(process->lifetimes, &sink);
    heap_source_add(process->source, &sink);
}

static void tell_left(void *context, uint64_t address, const struct heap_block *block) {
    struct lifetimes *lifetimes = context;
    lifetimes_left(lifetimes, block, lifetimes->time);
}

static void say_dhat_sums(const struct heap_process *process, const char *path) {
    const struct lifetimes_site *total = &process->lifetimes->total;
    const struct {
        const char *what;
        uint64_t bytes, blocks;
    } lines[] = {{"\nTotal:    ", total->bytes, total->blocks},
                 {"At t-gmax:", total->peak_bytes, total->peak},
                 {"At t-end: ", total->live_bytes, total->live}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char bytes[32], blocks[32];
        log_format(process->pid, LOG_USER, "%s %s bytes in %s blocks", lines[i].what,
                   heap_text_number(bytes, lines[i].bytes),
                   heap_text_number(blocks, lines[i].blocks));
    }
    log_format(process->pid, LOG_USER,
               "\nTo view the resulting profile, run\n  quern print %s\n"
               "or open it in Valgrind's dh_view.html",
               path);
}

static void report_dhat(struct heap_process *process) {
    heap_source_blocks(process->source, tell_left, process->lifetimes);
    char *path;
    int fd = open_out_file(process->pid, 0, &path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file) {
        struct text command = {0};
        present_command(&command, (const char *const *)request->argv);
        dhat_native(file, process->lifetimes, &process->stacks, process->names, command.bytes,
                    process->pid);
        text_free(&command);
        bool failed = ferror(file);
        if (fclose(file) != 0 || failed)
            log_cannot_write(path, strerror(errno));
    }
    if (file && log_shows(0))
        say_dhat_sums(process, path);
    struct budget_numbers numbers = {0};
    budget_number(&numbers, BUDGET_PEAK, process->lifetimes->total.peak_bytes);
    budget_number(&numbers, BUDGET_LEAKED, process->lifetimes->total.live_bytes);
    budget_number(&numbers, BUDGET_ALLOCATIONS, process->lifetimes->total.blocks);
    budgets_check(&request->budgets, process->pid, &numbers);
    free(path);
}

// ---- recordings ----

static void start_recording(struct heap_process *process) {
    struct heap_sink sink;
    summary_sink(&process->summary, &sink);
    heap_source_add(process->source, &sink);
    int fd = open_out_file(process->pid, 0, &process->path);
    if (fd < 0)
        return;
    struct text command = {0};
    present_command(&command, (const char *const *)request->argv);
    process->writer = recording_create(fd, &(struct recording_process){
                                               .pid = process->pid,
                                               .started = (uint64_t)time(NULL),
                                               .command = command.bytes,
                                           });
    text_free(&command);
    recording_sink(process->writer, &sink);
    heap_source_add(process->source, &sink);
    struct stat file;
    if (heap_settings()->max_size && stat(process->path, &file) == 0 && S_ISREG(file.st_mode))
        recording_set_most(process->writer, heap_settings()->max_size);
    else if (heap_settings()->max_size)
        log_complain("'%s' is not a file that can be kept small: --max-size does not hold for it",
                     process->path);
}

static void each_block(void *context, void (*replace)(void *context, struct heap_block *block),
                       void *replace_context) {
    heap_source_change(context, replace, replace_context);
}

// Writes the recording anew with less detail, beside the old one, which it then replaces.
static void merge_recording(struct heap_process *process) {
    struct text beside = {0};
    text_format(&beside, "%s.part", process->path);
    int from = open(process->path, O_RDONLY | O_CLOEXEC);
    int to = fd_move_high(open(beside.bytes, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    bool is_done = from >= 0 && to >= 0 &&
                   recording_merge(process->writer, from, to,
                                   &(struct recording_places){process->source, each_block}) &&
                   rename(beside.bytes, process->path) == 0;
    if (!is_done) {
        log_complain("'%s' cannot be kept small: %s", process->path, strerror(errno));
        recording_set_most(process->writer, 0);
        unlink(beside.bytes);
    }
    if (from >= 0)
        close(from);
    text_free(&beside);
}

static void show_line(void *context, const char *text) {
    struct heap_process *process = context;
    log_print(process->pid, LOG_USER, text);
}

// Reading a long recording again would take as long as a user notices.
#define DIAGNOSED_BYTES (1 << 20)

static void show_diagnoses(struct heap_process *process) {
    struct stat status;
    if (!diagnosis_wanted(request, true))
        return;
    int fd = open(process->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!diagnosis_demanded(request) &&
        (fstat(fd, &status) < 0 || status.st_size > DIAGNOSED_BYTES)) {
        log_format(process->pid, LOG_USER, "What stands out: quern diagnose %s", process->path);
        close(fd);
        return;
    }
    struct heap_file file;
    struct diagnoses diagnoses = {0};
    char *problem = heap_file_read(fd, &file, NULL, 0);
    if (!problem)
        problem = diagnose(fd, &file, &diagnoses);
    diagnosis_tell(request, process->pid, &diagnoses, true);
    free(problem);
    heap_file_free(&file);
    close(fd);
}

static void show_summary(struct heap_process *process, const struct recording_merges *merges) {
    heap_text(&process->summary, process->names,
              &(struct heap_text_options){
                  .top = heap_settings()->top,
                  .callers = heap_settings()->names.text.callers,
              },
              show_line, process);
    char *notice = heap_text_merges(merges);
    if (notice)
        log_format(process->pid, LOG_USER, "\nmerged:     %s", notice);
    free(notice);
    if (process->writer)
        log_format(process->pid, LOG_USER, "\nRecorded in %s: quern print %s", process->path,
                   process->path);
}

// Who holds what may be growing, if leaks were searched for.
static void record_holders(struct heap_process *process) {
    for (size_t i = 0; process->holders && i < process->summary.site_count; i++) {
        if (process->summary.sites[i].peak_bytes < DIAGNOSIS_GROWTH_BYTES)
            continue;
        char *holder = heap_holder_text(process, (uint32_t)i);
        if (*holder)
            recording_held(process->writer, (uint32_t)i, holder);
        free(holder);
    }
}

static void report_recording(struct heap_process *process) {
    struct heap_source_counts counts = heap_source_counts(process->source);
    struct recording_end end = {
        .time = process->summary.time, .missed = counts.missed, .unknown = counts.unknown};
    struct recording_merges merges = {0};
    if (process->writer) {
        if (recording_is_full(process->writer))
            merge_recording(process);
        merges = recording_merges(process->writer);
        record_holders(process);
        recording_set_sums(process->writer, &process->summary);
        int error = recording_close(process->writer, &end);
        if (error) {
            log_cannot_write(process->path, strerror(error));
            process->writer = NULL;
        }
    }
    if (log_shows(0))
        show_summary(process, &merges);
    if (process->writer)
        show_diagnoses(process);
    struct budget_numbers numbers = {0};
    budgets_recorded(&numbers, &request->budgets, &process->summary, process->path);
    budgets_check(&request->budgets, process->pid, &numbers);
}
// ---- samples ----

// The numbers of /proc/PID/stat behind the name, which may hold anything but ends at the last ")".
static bool parse_stat(char *text, uint64_t *minor, uint64_t *major, uint64_t *pages) {
    enum { FIRST = 3, MINOR = 10, MAJOR = 12, PAGES = 24 };
    char *at = strrchr(text, ')');
    if (!at)
        return false;
    at += 2;
    for (int field = FIRST; field <= PAGES; field++) {
        uint64_t value = strtoull(at, NULL, 10);
        if (field == MINOR)
            *minor = value;
        else if (field == MAJOR)
            *major = value;
        else if (field == PAGES)
            *pages = value;
        at = strchr(at, ' ');
        if (!at)
            return false;
        at++;
    }
    return true;
}

static void take_sample(struct heap_process *process, uint64_t now) {
    char text[1024];
    uint64_t minor = 0, major = 0, pages = 0;
    ssize_t size = process->stat >= 0 ? pread(process->stat, text, sizeof text - 1, 0) : -1;
    if (size <= 0)
        return;
    text[size] = 0;
    // A process that has ended has nothing in memory any more.
    if (parse_stat(text, &minor, &major, &pages) && pages)
        heap_source_sample(process->source, pages * (uint64_t)sysconf(_SC_PAGESIZE), minor, major);
    uint64_t wait = (now - process->attached) / SAMPLE_SHARE;
    process->next_sample = now + (wait > SAMPLE_INTERVAL ? wait : SAMPLE_INTERVAL);
}

static int open_stat(int pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    return fd_move_high(open(path, O_RDONLY | O_CLOEXEC));
}

// ---- processes ----

static uint64_t monotonic(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void heap_attach(int pid, int fd, uint64_t size) {
    if (!request || !heap_settings()->tool) {
        close(fd);
        return;
    }
    heap_finish(pid);
    const char *problem;
    struct heap_source *source = heap_source_open(fd, size, &problem);
    if (!source) {
        log_complain("the recording of process %d cannot be read: %s", pid, problem);
        return;
    }
    main_seen |= pid == main_pid;
    struct heap_process *process = base_allocate(sizeof *process);
    *process =
        (struct heap_process){.pid = pid, .source = source, .stat = -1, .attached = monotonic()};
    // A translated process has the engine's memory as well as its own.
    if (!request->engine)
        process->stat = open_stat(pid);
    process->names = heap_names_new(symbols, pid, &heap_settings()->names);
    if (heap_settings()->tool == HEAP_TOOL_MASSIF)
        start_massif(process);
    else if (heap_settings()->tool == HEAP_TOOL_DHAT)
        start_dhat(process);
    else
        start_recording(process);
    processes = base_reallocate(processes, (process_count + 1) * sizeof *processes);
    processes[process_count++] = process;
}

void heap_map(int pid, uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    struct heap_process *process = heap_process_find(pid);
    if (!process)
        return;
    struct heap_mapping mapping = {.start = start, .end = end, .offset = offset, .path = path};
    struct stat file;
    if (stat(path, &file) == 0) {
        mapping.device = file.st_dev;
        mapping.inode = file.st_ino;
        mapping.size = (uint64_t)file.st_size;
        mapping.changed_seconds = (uint64_t)file.st_mtim.tv_sec;
        mapping.changed_nanoseconds = (uint32_t)file.st_mtim.tv_nsec;
    }
    heap_source_mapping(process->source, &mapping);
}

static void complain_if_broken(struct heap_process *process, bool was) {
    if (!was && heap_source_broken(process->source))
        log_complain("process %d has damaged what it shares with Quern; it is recorded up to there",
                     process->pid);
}

// `words` were in the fullest ring, so many nanoseconds after the last look.
static int64_t choose_wait(size_t words, uint64_t passed) {
    if (words >= BUSY_WORDS)
        return 0;
    int64_t wait = words ? (int64_t)(passed * GOOD_WORDS / words) : 2 * next_wait;
    return wait < SHORTEST_WAIT ? SHORTEST_WAIT : wait > LONGEST_WAIT ? LONGEST_WAIT : wait;
}

// Who follows stacks is to tell only what can make a snapshot.
static void publish_gate(struct heap_process *process) {
    if (!process->massif || !request->engine)
        return;
    struct massif_gate gate = massif_gate(process->massif);
    enum massif_time unit = heap_settings()->massif.time_unit;
    heap_source_gate(process->source, gate.total,
                     unit == MASSIF_INSTRUCTIONS ? gate.time : UINT64_MAX,
                     unit == MASSIF_MILLISECONDS ? gate.time * 1000000 : UINT64_MAX);
}

void heap_drain(void) {
    static uint64_t last;
    size_t words = 0;
    uint64_t now = monotonic();
    for (size_t i = 0; i < process_count; i++) {
        bool was = heap_source_broken(processes[i]->source);
        size_t got = heap_source_drain(processes[i]->source, false);
        words = got > words ? got : words;
        publish_gate(processes[i]);
        complain_if_broken(processes[i], was);
        if (now >= processes[i]->next_sample)
            take_sample(processes[i], now);
        if (processes[i]->writer)
            recording_tick(processes[i]->writer, now);
        if (processes[i]->writer && recording_is_full(processes[i]->writer))
            merge_recording(processes[i]);
    }
    next_wait = choose_wait(words, now - last);
    last = now;
}

int64_t heap_timeout(void) {
    return process_count ? next_wait : -1;
}

static void say_what_was_seen(struct heap_process *process) {
    struct heap_source_counts counts = heap_source_counts(process->source);
    if (log_shows(1))
        log_format(process->pid, LOG_DEBUGGING,
                   "heap events: %llu allocations, %llu releases, %llu resizes; %llu releases of "
                   "unknown blocks, %llu allocations of known ones",
                   (unsigned long long)counts.allocated, (unsigned long long)counts.freed,
                   (unsigned long long)counts.resized, (unsigned long long)counts.unknown,
                   (unsigned long long)counts.repaired);
    if (counts.missed)
        log_format(process->pid, LOG_USER, "%llu heap events could not be recorded",
                   (unsigned long long)counts.missed);
}

static void free_process(struct heap_process *process) {
    if (process->massif)
        massif_free(process->massif);
    if (process->stat >= 0)
        close(process->stat);
    free(process->path);
    free(process->holders);
    free(process->stack_pointers);
    if (process->lifetimes)
        lifetimes_free(process->lifetimes);
    free(process->lifetimes);
    summary_free(&process->summary);
    heap_names_free(process->names);
    stacks_free(&process->stacks);
    heap_source_free(process->source);
    free(process);
}

void heap_finish(int pid) {
    struct heap_process *process = heap_process_find(pid);
    if (!process)
        return;
    bool was = heap_source_broken(process->source);
    heap_source_drain(process->source, true);
    complain_if_broken(process, was);
    heap_source_end(process->source);
    say_what_was_seen(process);
    if (process->massif) {
        char *path = heap_write_massif(process, 0);
        check_massif(process, path);
        heap_write_xtree(process, request);
        if (path)
            present_file(request, process->pid, path);
        free(path);
    } else if (process->lifetimes)
        report_dhat(process);
    else
        report_recording(process);
    for (size_t i = 0; i < process_count; i++) {
        if (processes[i] == process) {
            processes[i] = processes[--process_count];
            break;
        }
    }
    free_process(process);
}

void heap_finish_all(void) {
    while (process_count)
        heap_finish(processes[0]->pid);
}

void heap_finish_main(void) {
    heap_finish(main_pid);
    if (heap_settings()->tool && !main_seen)
        log_print(main_pid, LOG_USER,
                  "The program was not recorded: it is statically linked, or was started in a way\n"
                  "that does not allow LD_PRELOAD");
}
