// The file is mapped as it is. Numbers in it come from the target and are checked before they are
// used; it cannot shrink. A process that was killed has not folded its live blocks: that is made up
// for here, but for the counts of single bytes, which only the process had.
#include "tools/dhat/supervisor/dhat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/template.h"
#include "base/text.h"
#include "supervisor/tool.h"
#include "wire/dhat_counts.h"
#include "wire/dhat_events.h"

enum { FRAMES_MOST = 500, ACCESSES_SHOWN = 0xffff };

struct report {
    const struct supervisor_request *request;
    struct symbols *symbols;
    struct log *log;
    const struct followed *process;
    struct dhat_file *file;
    const uint8_t *memory;
    struct dhat_header header;
    struct dhat_point_counts *points; // copied
    struct named_cache *cache;
};

static bool is_sound(int fd) {
    struct stat status;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK && fstat(fd, &status) == 0 &&
           (uint64_t)status.st_size == DHAT_SIZE;
}

static void bound(uint64_t *number, uint64_t most) {
    if (*number > most)
        *number = most;
}

// ---- what a killed process has not done --------------------------------------------------------

static void apply_events(struct report *report) {
    uint32_t logs = report->header.logs < DHAT_LOGS ? report->header.logs : DHAT_LOGS;
    struct dhat_pending *pending = base_allocate((logs + 1) * sizeof *pending);
    dhat_merge(&report->header, report->points, (const void *)(report->memory + DHAT_AT_LOGS), logs,
               pending, UINT64_MAX, NULL);
    free(pending);
}

static void settle(struct report *report) {
    struct dhat_header *h = &report->header;
    dhat_look_for_peak(h);
    for (uint32_t i = 1; i < h->points; i++) {
        dhat_settle(h, &report->points[i]);
        report->points[i].lifetimes += report->points[i].blocks * h->time;
    }
}

static void fold_live_block(struct report *report, const struct dhat_note *note) {
    if (!note->size || !note->point || note->point >= report->header.points)
        return;
    struct dhat_point_counts *point = &report->points[note->point];
    for (unsigned i = 0; i < DHAT_LANES; i++) {
        point->reads += note->reads[i];
        point->writes += note->writes[i];
    }
}

static void fold_live_blocks(struct report *report) {
    for (unsigned bits = DHAT_CLASS_LEAST; bits < DHAT_CLASSES; bits++)
        for (uint32_t i = 0; i < report->header.notes[bits]; i++)
            fold_live_block(report, (const void *)(report->memory + dhat_at_note(bits, i)));
}

// ---- points ------------------------------------------------------------------------------------

static uint32_t frame_number(struct report *report, const struct named_frame *frame) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return 0;
    fprintf(out, "0x%llX: ", (unsigned long long)frame->address);
    stack_text_frame(out, &frame->symbol, &report->request->stacks);
    uint32_t number = fclose(out) == 0 ? dhat_file_frame(report->file, text) : 0;
    char *path = result_path(&frame->symbol);
    if (path)
        dhat_file_path(report->file, number, path);
    free(path);
    free(text);
    return number;
}

// The function that allocates is left out, as Valgrind does: it is the same everywhere.
static void name_stack(struct report *report, const struct dhat_point_counts *from,
                       struct dhat_point *to) {
    const uint64_t *words = (const uint64_t *)(report->memory + DHAT_AT_STACKS);
    if (!from->stack || from->stack >= DHAT_STACK_WORDS)
        return;
    uint64_t count = words[from->stack];
    if (count > FRAMES_MOST || from->stack + count >= DHAT_STACK_WORDS)
        return;
    unsigned skipped = report->header.mode == DHAT_HEAP && count > 1;
    struct stack stack = {.pid = report->process->pid,
                          .addresses = words + from->stack + 1 + skipped,
                          .count = count - skipped,
                          .first_is_return_address = skipped};
    struct named_stack named =
        named_stack_make(report->symbols, report->cache, &stack, &report->request->stacks);
    to->fs = base_allocate((named.shown + 1) * sizeof *to->fs);
    for (size_t i = 0; i < named.shown; i++)
        to->fs[to->fs_count++] = frame_number(report, &named.frames[i]);
    named_stack_free(&named);
}

static void take_accesses(struct report *report, const struct dhat_point_counts *from,
                          struct dhat_point *to) {
    const uint32_t *words = (const uint32_t *)(report->memory + DHAT_AT_ACCESSES);
    if (!from->accesses || from->size > DHAT_ACCESSES_MOST ||
        from->accesses + from->size > DHAT_ACCESSES)
        return;
    to->acc = base_allocate((from->size + 1) * sizeof *to->acc);
    to->acc_count = from->size;
    for (size_t i = 0; i < from->size; i++) {
        uint32_t count = words[from->accesses + i];
        to->acc[i] = count < ACCESSES_SHOWN ? count : ACCESSES_SHOWN;
    }
}

static void add_point(struct report *report, const struct dhat_point_counts *from) {
    struct dhat_point to = {.tb = from->total_bytes,
                            .tbk = from->total_blocks,
                            .tl = from->lifetimes,
                            .mb = from->max_bytes,
                            .mbk = from->max_blocks,
                            .gb = from->peak_bytes,
                            .gbk = from->peak_blocks,
                            .eb = from->bytes,
                            .ebk = from->blocks,
                            .rb = from->reads,
                            .wb = from->writes};
    take_accesses(report, from, &to);
    name_stack(report, from, &to);
    dhat_file_add(report->file, &to);
}

static void read_guarded(void *context) {
    struct report *report = context;
    struct dhat_header *h = &report->header;
    uint64_t points = h->points;
    bound(&points, DHAT_POINTS);
    for (unsigned bits = DHAT_CLASS_LEAST; bits < DHAT_CLASSES; bits++)
        if ((uint64_t)h->notes[bits] << bits > 1ul << 37)
            h->notes[bits] = 0;
    h->points = (uint32_t)points;
    report->points = base_allocate((points + 1) * sizeof *report->points);
    memcpy(report->points, report->memory + DHAT_AT_POINTS, points * sizeof *report->points);
    if (!h->is_over)
        apply_events(report);
    if (!h->is_over && h->mode == DHAT_HEAP) {
        settle(report);
        fold_live_blocks(report);
    }
    report->file->te = h->time;
    report->file->tg = h->peak_time;
    for (uint32_t i = 1; i < points; i++)
        if (report->points[i].total_blocks)
            add_point(report, &report->points[i]);
}

// ---- the file ----------------------------------------------------------------------------------

static char *write_out(const struct tool_run *run, const struct followed *process,
                       const struct dhat_file *file) {
    const struct dhat_state *state = run->state;
    char *error = NULL;
    char *name = template_expand(state->recorded.out_file, process->pid, 1, &error);
    if (!name) {
        log_complain("--dhat-out-file: %s", error);
        free(error);
        return NULL;
    }
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    if (out)
        dhat_out(out, file);
    bool failed = !out || ferror(out);
    if ((out && fclose(out) != 0) || failed) {
        log_cannot_write(run->log, name, strerror(errno));
        free(name);
        return NULL;
    }
    char *whole = realpath(name, NULL);
    if (!whole)
        return name;
    free(name);
    return whole;
}

static void sum_line(struct text *lines, const char *what, uint64_t bytes, uint64_t blocks,
                     bool is_ad_hoc) {
    char first[32], second[32];
    text_format(lines, "%-10s %s %s in %s %s\n", what, text_number(first, bytes),
                is_ad_hoc ? "units" : "bytes", text_number(second, blocks),
                is_ad_hoc ? "events" : "blocks");
}

static void say_sums(const struct report *report, const char *path) {
    struct text lines = {0};
    struct dhat_point sum = {0};
    char digits[32];
    const struct dhat_header *h = &report->header;
    for (size_t i = 0; i < report->file->point_count; i++) {
        const struct dhat_point *point = &report->file->points[i];
        sum.tb += point->tb;
        sum.tbk += point->tbk;
        sum.rb += point->rb;
        sum.wb += point->wb;
    }
    text_char(&lines, '\n');
    sum_line(&lines, "Total:", sum.tb, sum.tbk, h->mode == DHAT_AD_HOC);
    if (h->mode == DHAT_HEAP) {
        sum_line(&lines, "At t-gmax:", h->max_bytes, h->max_blocks, false);
        sum_line(&lines, "At t-end:", h->bytes, h->blocks, false);
        text_format(&lines, "Reads:     %s bytes\n", text_number(digits, sum.rb));
        text_format(&lines, "Writes:    %s bytes\n", text_number(digits, sum.wb));
    }
    if (!h->is_over)
        text_string(&lines, "The process was killed: accesses to single bytes of blocks that were "
                            "alive then are not in the profile.\n");
    if (path)
        text_format(&lines,
                    "\nTo view the resulting profile, run\n  quern print %s\n"
                    "or open it in Valgrind's dh_view.html\n",
                    path);
    lines.bytes[--lines.size] = 0; // the log ends lines itself
    log_format(report->log, report->process->pid, LOG_USER, "%s", lines.bytes);
    text_free(&lines);
}

// Limits, and what stands out.
static void check(const struct report *report) {
    const struct supervisor_request *request = report->request;
    struct budget_numbers numbers = {0};
    uint64_t blocks = 0;
    for (size_t i = 0; i < report->file->point_count; i++)
        blocks += report->file->points[i].tbk;
    if (report->header.mode != DHAT_HEAP)
        return;
    budget_number(&numbers, BUDGET_PEAK, report->header.max_bytes);
    budget_number(&numbers, BUDGET_LEAKED, report->header.bytes);
    budget_number(&numbers, BUDGET_ALLOCATIONS, blocks);
    budgets_check(request, report->process->pid, &numbers);
    if (report->process->muted || !diagnosis_wanted(request, false))
        return;
    struct diagnoses diagnoses;
    diagnose_dhat(report->file, &diagnoses);
    diagnosis_tell(request, report->process->pid, &diagnoses, false);
}

static void start_file(struct report *report) {
    static const char *const modes[] = {"heap", "copy", "ad-hoc"};
    static const char *const verbs[] = {"Allocated", "Copied", "Occurred"};
    uint32_t mode = report->header.mode <= DHAT_AD_HOC ? report->header.mode : DHAT_HEAP;
    const char *command = report->process->command;
    report->header.mode = mode;
    dhat_file_init(report->file, modes[mode], verbs[mode], command ? command : "",
                   report->process->pid);
    report->file->bklt = report->file->bkacc = mode == DHAT_HEAP;
    if (mode == DHAT_AD_HOC) {
        report->file->bu = base_copy("unit");
        report->file->bsu = base_copy("units");
        report->file->bksu = base_copy("events");
    }
}

void dhat_report(const struct tool_run *run, const struct followed *process, int counts) {
    struct dhat_file file = {0};
    struct report report = {.request = run->request,
                            .symbols = run->symbols,
                            .log = run->log,
                            .process = process,
                            .file = &file};
    void *memory =
        is_sound(counts) ? mmap(NULL, DHAT_SIZE, PROT_READ, MAP_SHARED, counts, 0) : MAP_FAILED;
    if (memory != MAP_FAILED) {
        report.memory = memory;
        memcpy(&report.header, report.memory + DHAT_AT_HEADER, sizeof report.header);
        start_file(&report);
    }
    report.cache = named_cache_new();
    if (memory == MAP_FAILED || report.header.magic != DHAT_MAGIC ||
        !guard_run(read_guarded, &report)) {
        log_complain("what dhat counted in process %d cannot be read", process->pid);
    } else {
        char *path = write_out(run, process, &file);
        if (!process->muted && log_shows(run->log, 0))
            say_sums(&report, path);
        check(&report);
        if (report.header.incomplete)
            log_complain("the profile of process %d is not complete: it has more stacks than "
                         "there is room for",
                         process->pid);
        free(path);
    }
    named_cache_free(report.cache);
    free(report.points);
    dhat_file_free(&file);
    if (memory != MAP_FAILED)
        munmap(memory, DHAT_SIZE);
}
