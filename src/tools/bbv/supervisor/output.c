// The files arrive while the process runs, so that vectors are written as they are complete. What
// is in them comes from the target and may be anything: it is copied and checked.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/template.h"
#include "supervisor/tool.h"
#include "tools/bbv/bbv.h"
#include "tools/bbv/supervisor/bbv.h"

enum { NUMBER_MOST = 1 << 22 }; // of a block

struct pair {
    uint64_t pc, number, count;
};

struct bbv_file {
    FILE *stream; // NULL: not open
    char *name;
};

struct bbv_output {
    int totals, records; // memory files; -1: none
    uint64_t *pcs;       // of blocks, by number
    size_t pc_count;
    struct pair *pairs; // of the interval that is being read
    size_t pair_count, pair_room;
    struct bbv_file files[BBV_THREADS]; // by thread
    bool is_damaged;
};

// ---- files -------------------------------------------------------------------------------------

// A process besides the main one does not write over the file of another.
static char *name_file(const struct tool_run *run, const struct followed *process,
                       const char *pattern, const char *option, unsigned thread) {
    struct text name = {0};
    char *error = NULL;
    char *expanded = template_expand(pattern, process->pid, 1, &error);
    if (!expanded) {
        log_complain("--%s: %s", option, error);
        free(error);
        return NULL;
    }
    text_string(&name, expanded);
    free(expanded);
    if (process->pid != run->main_pid && !template_has_pid(pattern))
        text_format(&name, ".%d", process->pid);
    if (thread > 1)
        text_format(&name, ".%u", thread);
    return text_take(&name);
}

static struct bbv_file open_file(const struct tool_run *run, const struct followed *process,
                                 const char *pattern, const char *option, unsigned thread) {
    char *name = name_file(run, process, pattern, option, thread);
    int fd = name ? open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    FILE *stream = fd < 0 ? NULL : fdopen(fd_move_high(fd), "w");
    if (stream)
        return (struct bbv_file){stream, name};
    if (name)
        log_cannot_write(run->log, name, strerror(errno));
    free(name);
    return (struct bbv_file){0};
}

static void close_file(const struct tool_run *run, struct bbv_file *file) {
    bool failed = ferror(file->stream);
    if (fclose(file->stream) != 0 || failed)
        log_cannot_write(run->log, file->name, strerror(errno));
    free(file->name);
    *file = (struct bbv_file){0};
}

static FILE *file_of_thread(const struct tool_run *run, const struct followed *process,
                            unsigned thread) {
    const struct bbv_settings *settings = run->state;
    struct bbv_output *output = process->own;
    if (!output->files[thread].stream)
        output->files[thread] =
            open_file(run, process, settings->bb_out_file, "bb-out-file", thread);
    return output->files[thread].stream;
}

// ---- records -----------------------------------------------------------------------------------

static int compare_pcs(const void *a, const void *b) {
    const struct pair *x = a, *y = b;
    return (x->pc > y->pc) - (x->pc < y->pc);
}

static void write_interval(const struct tool_run *run, const struct followed *process,
                           unsigned thread) {
    struct bbv_output *output = process->own;
    FILE *file = file_of_thread(run, process, thread);
    qsort(output->pairs, output->pair_count, sizeof *output->pairs, compare_pcs);
    if (file) {
        fputc('T', file);
        for (size_t i = 0; i < output->pair_count; i++)
            fprintf(file, ":%" PRIu64 ":%" PRIu64 "   ", output->pairs[i].number,
                    output->pairs[i].count);
        fputc('\n', file);
    }
    output->pair_count = 0;
}

static void add_pair(struct bbv_output *output, uint64_t number, uint64_t count) {
    if (number >= output->pc_count)
        return;
    output->pairs =
        base_reach(output->pairs, &output->pair_room, output->pair_count, sizeof *output->pairs);
    output->pairs[output->pair_count++] = (struct pair){output->pcs[number], number, count};
}

static void add_block(struct bbv_output *output, uint64_t number, uint64_t pc) {
    if (number >= NUMBER_MOST)
        return;
    output->pcs = base_reach(output->pcs, &output->pc_count, number, sizeof *output->pcs);
    output->pcs[number] = pc;
}

// The number of words of a record; 0: it is invalid.
static uint64_t take_record(const struct tool_run *run, const struct followed *process,
                            const uint64_t *words, uint64_t available) {
    struct bbv_output *output = process->own;
    if (words[0] == BBV_BLOCK && available >= 3) {
        add_block(output, words[1], words[2]);
        return 3;
    }
    if (words[0] == BBV_INTERVAL && available >= 2 && words[1] > 0 && words[1] < BBV_THREADS) {
        write_interval(run, process, (unsigned)words[1]);
        return 2;
    }
    if (words[0] == BBV_COUNTS && available >= 2 && words[1] <= (available - 2) / 2) {
        for (uint64_t i = 0; i < words[1]; i++)
            add_pair(output, words[2 + 2 * i], words[3 + 2 * i]);
        return 2 + 2 * words[1];
    }
    return 0;
}

static bool read_whole(int fd, void *to, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(fd, (char *)to + done, size - done, (off_t)done);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

static void take_records(const struct tool_run *run, const struct followed *process) {
    struct bbv_output *output = process->own;
    struct bbv_records_file *file = base_allocate(sizeof *file);
    bool is_sound = output->records >= 0 && read_whole(output->records, file, sizeof *file) &&
                    file->used <= BBV_RECORD_WORDS;
    for (uint64_t at = 0; is_sound && at < file->used;) {
        uint64_t size = take_record(run, process, file->words + at, file->used - at);
        is_sound = size != 0;
        at += size;
    }
    output->is_damaged |= !is_sound;
    if (output->records >= 0)
        close(output->records);
    output->records = -1;
    free(file);
}

// ---- the end -----------------------------------------------------------------------------------

static char *summary(const struct tool_run *run, unsigned thread, const struct bbv_totals *of) {
    const struct bbv_settings *settings = run->state;
    struct text text = {0};
    text_format(&text,
                "\n\n# Thread %u\n#   Total intervals: %" PRIu64 " (Interval Size %" PRIu64 ")\n"
                "#   Total instructions: %" PRIu64 "\n#   Total reps: %" PRIu64 "\n"
                "#   Unique reps: %" PRIu64 "\n#   Total fldcw instructions: %" PRIu64 "\n\n",
                thread, of->instructions / settings->interval_size, settings->interval_size,
                of->instructions, of->reps, of->unique_reps, of->fldcws);
    return text_take(&text);
}

static void write_summaries(struct tool_run *run, struct followed *process) {
    struct bbv_output *output = process->own;
    struct bbv_totals_file *totals = base_allocate(sizeof *totals);
    if (!read_whole(output->totals, totals, sizeof *totals))
        output->is_damaged = true;
    for (unsigned i = 1; i < BBV_THREADS; i++) {
        if (!totals->threads[i].instructions && !output->files[i].stream)
            continue;
        char *text = summary(run, i, &totals->threads[i]);
        FILE *file = file_of_thread(run, process, i);
        if (file)
            fputs(text, file);
        if (!process->muted && log_shows(run->log, 0))
            log_print(run->log, process->pid, LOG_USER, text);
        free(text);
    }
    if (totals->is_incomplete)
        log_complain("the vectors of process %d are not complete: it has more blocks or threads "
                     "than there is room for",
                     process->pid);
    free(totals);
}

static void write_function(FILE *file, const struct tool_run *run, int pid, uint64_t pc) {
    struct symbol_frame frame;
    if (symbols_resolve(run->symbols, pid, pc, false, &frame, 1) != 1 || !frame.name)
        return;
    if (stack_text_is_below_main(&frame))
        fputs("(below main)", file);
    else
        stack_text_escaped(file, frame.name);
}

static void write_pcs(const struct tool_run *run, const struct followed *process) {
    const struct bbv_settings *settings = run->state;
    struct bbv_output *output = process->own;
    if (!settings->pc_out_file)
        return;
    output->pair_count = 0;
    for (uint64_t i = 1; i < output->pc_count; i++)
        if (output->pcs[i])
            add_pair(output, i, 0);
    qsort(output->pairs, output->pair_count, sizeof *output->pairs, compare_pcs);
    struct bbv_file file = open_file(run, process, settings->pc_out_file, "pc-out-file", 1);
    if (!file.stream)
        return;
    for (size_t i = 0; i < output->pair_count; i++) {
        const struct pair *pair = &output->pairs[i];
        fprintf(file.stream, "F:%" PRIu64 ":%" PRIx64 ":", pair->number, pair->pc);
        write_function(file.stream, run, process->pid, pair->pc);
        fputc('\n', file.stream);
    }
    close_file(run, &file);
}

static void free_output(const struct tool_run *run, struct followed *process) {
    struct bbv_output *output = process->own;
    if (!output)
        return;
    for (unsigned i = 0; i < BBV_THREADS; i++)
        if (output->files[i].stream)
            close_file(run, &output->files[i]);
    if (output->totals >= 0)
        close(output->totals);
    if (output->records >= 0)
        close(output->records);
    free(output->pcs);
    free(output->pairs);
    free(output);
    process->own = NULL;
}

void bbv_finish(struct tool_run *run, struct followed *process) {
    struct bbv_output *output = process->own;
    if (!output)
        return;
    if (output->records >= 0)
        take_records(run, process);
    write_summaries(run, process);
    write_pcs(run, process);
    if (output->is_damaged)
        log_complain("what exp-bbv counted in process %d cannot be read", process->pid);
    free_output(run, process);
}

// ---- memory files ------------------------------------------------------------------------------

// A program that another one has become starts anew, as in Valgrind.
static void begin(const struct tool_run *run, struct followed *process, int totals) {
    struct bbv_output *output = base_allocate(sizeof *output);
    free_output(run, process);
    output->totals = totals;
    output->records = -1;
    process->own = output;
}

void bbv_take_file(struct tool_run *run, struct followed *process, int fd) {
    struct stat status;
    uint64_t magic = 0;
    fd = fd_move_high(fd);
    if (fd < 0)
        return;
    bool is_known = fstat(fd, &status) == 0 && read_whole(fd, &magic, sizeof magic);
    if (is_known && magic == BBV_TOTALS_MAGIC && status.st_size == sizeof(struct bbv_totals_file)) {
        begin(run, process, fd);
        return;
    }
    struct bbv_output *output = process->own;
    if (!is_known || !output || magic != BBV_RECORDS_MAGIC ||
        status.st_size != sizeof(struct bbv_records_file)) {
        close(fd);
        return;
    }
    if (output->records >= 0)
        take_records(run, process);
    output->records = fd;
}
