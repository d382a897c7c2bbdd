// The numbers of the followed processes, and of Quern itself, for Prometheus. The labels are few:
// the service, and the pid.
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "fleet/exporter.h"

// ---- text exposition ---------------------------------------------------------------------------

// Bytes that are not UTF-8 would make the whole page invalid.
static void put_label(FILE *out, const char *name, const char *value) {
    fprintf(out, "%s=\"", name);
    for (const unsigned char *at = (const unsigned char *)value; *at;) {
        size_t length = stack_text_printable(at);
        if (!length)
            fprintf(out, "\\\\x%02X", *at);
        else if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else
            fwrite(at, 1, length, out);
        at += length ? length : 1;
    }
    fputc('"', out);
}

static void put_head(FILE *out, const char *name, const char *type, const char *help) {
    fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

// ---- of the processes --------------------------------------------------------------------------

// What is asked of a follower under its lock.
struct numbers {
    uint64_t live_bytes, live_blocks, peak_bytes, allocated_bytes, allocations, releases, resizes;
    uint64_t temporary, mapped_bytes, resident, anonymous, minor_faults, major_faults;
    uint64_t recording_bytes, lost_bytes, lost_blocks, stacks, threads;
    uint64_t running;
    int pid;
    bool is_searched, is_sampled, has_anonymous;
};

static uint64_t count_stacks(const struct summary *summary) {
    uint64_t count = 0;
    for (size_t i = 0; i < summary->site_count; i++)
        count += summary->sites[i].allocated > 0;
    return count;
}

static struct numbers numbers_of(struct follower *follower) {
    struct numbers numbers = {.pid = follower->pid};
    pthread_mutex_lock(&follower->lock);
    if (follower->is_open) {
        const struct summary *summary = &follower->file.summary;
        const struct heap_sample *last = &summary->resident.last;
        numbers = (struct numbers){
            .pid = follower->pid,
            .live_bytes = summary->total.live_bytes,
            .live_blocks = summary->total.live,
            .peak_bytes = summary->total.peak_bytes,
            .allocated_bytes = summary->total.allocated_bytes,
            .allocations = summary->total.allocated,
            .releases = summary->freed,
            .resizes = summary->resized,
            .temporary = summary->total.temporary,
            .mapped_bytes = summary->regions.live_bytes,
            .resident = last->resident,
            .anonymous = last->anonymous,
            .minor_faults = last->minor_faults,
            .major_faults = last->major_faults,
            .recording_bytes = follower->size,
            .lost_bytes = follower->lost_bytes,
            .lost_blocks = follower->lost_blocks,
            .stacks = count_stacks(summary),
            .threads = summary->threads,
            .running = !follower->writer_ended,
            .is_searched = follower->is_searched,
            .is_sampled = summary->resident.samples > 0,
            .has_anonymous = summary->resident.samples > 0 && last->anonymous != HEAP_UNKNOWN,
        };
    }
    pthread_mutex_unlock(&follower->lock);
    return numbers;
}

// The condition is the offset of a flag in struct numbers; 0: there is none.
#define AT(field) offsetof(struct numbers, field)
static const struct {
    const char *name, *type, *help;
    size_t offset, condition;
} metrics[] = {
    {"quern_heap_live_bytes", "gauge", "Bytes in blocks that are not freed.", AT(live_bytes), 0},
    {"quern_heap_live_blocks", "gauge", "Blocks that are not freed.", AT(live_blocks), 0},
    {"quern_heap_peak_bytes", "gauge", "Maximum of the live bytes so far.", AT(peak_bytes), 0},
    {"quern_heap_allocated_bytes_total", "counter", "Bytes allocated, with what resizes add.",
     AT(allocated_bytes), 0},
    {"quern_heap_allocations_total", "counter", "Blocks allocated.", AT(allocations), 0},
    {"quern_heap_releases_total", "counter", "Blocks freed.", AT(releases), 0},
    {"quern_heap_resizes_total", "counter", "Blocks resized.", AT(resizes), 0},
    {"quern_heap_temporary_total", "counter",
     "Blocks whose release was the next heap event of their thread.", AT(temporary), 0},
    {"quern_heap_mapped_bytes", "gauge", "Bytes that the program has mapped itself.",
     AT(mapped_bytes), 0},
    {"quern_heap_stacks", "gauge", "Different call stacks that have allocated.", AT(stacks), 0},
    {"quern_heap_threads_total", "counter", "Threads seen so far.", AT(threads), 0},
    {"quern_leaks_lost_bytes", "gauge", "Bytes that the latest leak search found lost.",
     AT(lost_bytes), AT(is_searched)},
    {"quern_leaks_lost_blocks", "gauge", "Blocks that the latest leak search found lost.",
     AT(lost_blocks), AT(is_searched)},
    {"quern_process_running", "gauge", "1 while the process is recorded, then 0.", AT(running), 0},
    {"quern_process_resident_bytes", "gauge", "Bytes of the process in memory.", AT(resident),
     AT(is_sampled)},
    {"quern_process_anonymous_bytes", "gauge", "Of these, private memory of no file.",
     AT(anonymous), AT(has_anonymous)},
    {"quern_process_minor_faults_total", "counter", "Page faults without reading.",
     AT(minor_faults), AT(is_sampled)},
    {"quern_process_major_faults_total", "counter", "Page faults that had to read.",
     AT(major_faults), AT(is_sampled)},
    {"quern_recording_bytes", "gauge", "Size of the recording.", AT(recording_bytes), 0},
};

static void put_processes(struct exporter *exporter, FILE *out) {
    struct numbers all[EXPORTER_PROCESSES];
    size_t count;
    exporter_take(exporter, 0);
    count = exporter->follower_count;
    for (size_t i = 0; i < count; i++)
        all[i] = numbers_of(exporter->followers[i]);
    exporter_leave(exporter);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        put_head(out, metrics[i].name, metrics[i].type, metrics[i].help);
        for (size_t j = 0; j < count; j++) {
            const char *own = (const char *)&all[j];
            if (metrics[i].condition && !*(const bool *)(own + metrics[i].condition))
                continue;
            fprintf(out, "%s{", metrics[i].name);
            put_label(out, "service", exporter->identity.service);
            fprintf(out, ",pid=\"%d\"} %llu\n", all[j].pid,
                    (unsigned long long)*(const uint64_t *)(own + metrics[i].offset));
        }
    }
}

// ---- of Quern itself ---------------------------------------------------------------------------

struct own_cost {
    double seconds;
    uint64_t resident;
};

static struct own_cost cost_of(int pid) {
    struct own_cost cost = {0};
    char path[64], line[1024];
    unsigned long long user = 0, system = 0, pages = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t size = file ? fread(line, 1, sizeof line - 1, file) : 0;
    line[size] = 0;
    const char *behind = strrchr(line, ')');
    if (behind && sscanf(behind,
                         ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d "
                         "%*d %*d %*u %*u %llu",
                         &user, &system, &pages) == 3) {
        cost.seconds = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
        cost.resident = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    }
    if (file)
        fclose(file);
    return cost;
}

static void put_own(struct exporter *exporter, FILE *out) {
    struct own_cost supervisor = cost_of(exporter->supervisor), own = cost_of(getpid());
    put_head(out, "quern_cpu_seconds_total", "counter", "CPU time of Quern's own processes.");
    fprintf(out, "quern_cpu_seconds_total{part=\"supervisor\"} %.2f\n", supervisor.seconds);
    fprintf(out, "quern_cpu_seconds_total{part=\"exporter\"} %.2f\n", own.seconds);
    put_head(out, "quern_resident_bytes", "gauge", "Memory of Quern's own processes.");
    fprintf(out, "quern_resident_bytes{part=\"supervisor\"} %llu\n",
            (unsigned long long)supervisor.resident);
    fprintf(out, "quern_resident_bytes{part=\"exporter\"} %llu\n",
            (unsigned long long)own.resident);
    pthread_mutex_lock(&exporter->lock);
    uint64_t processes = exporter->processes, passed_over = exporter->passed_over;
    pthread_mutex_unlock(&exporter->lock);
    put_head(out, "quern_processes_total", "counter", "Processes exported so far.");
    fprintf(out, "quern_processes_total %llu\n", (unsigned long long)processes);
    put_head(out, "quern_processes_dropped_total", "counter",
             "Processes not exported, because too many ran at once.");
    fprintf(out, "quern_processes_dropped_total %llu\n", (unsigned long long)passed_over);
    put_head(out, "quern_info", "gauge", "What is recorded here; always 1.");
    fputs("quern_info{", out);
    put_label(out, "service", exporter->identity.service);
    fputc(',', out);
    put_label(out, "version", exporter->identity.version);
    fputc(',', out);
    put_label(out, "build_id", exporter->identity.build_id);
    fputc(',', out);
    put_label(out, "host", exporter->identity.host);
    fputs("} 1\n", out);
}

static void put_push(struct exporter *exporter, FILE *out) {
    struct push_counts counts = pusher_counts(exporter->pusher);
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } all[] = {
        {"quern_push_intervals_total", "counter", "Intervals made.", counts.made},
        {"quern_push_pushed_total", "counter", "Intervals that the store has taken.",
         counts.pushed},
        {"quern_push_dropped_total", "counter", "Intervals that were dropped.", counts.dropped},
        {"quern_push_failures_total", "counter", "Attempts that failed.", counts.failures},
        {"quern_push_waiting", "gauge", "Intervals that wait in the spool.", counts.waiting},
        {"quern_push_spool_bytes", "gauge", "Size of the spool, all exporters together.",
         counts.spool_bytes},
        {"quern_push_up", "gauge", "Whether the last attempt succeeded.", counts.is_up},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        put_head(out, all[i].name, all[i].type, all[i].help);
        fprintf(out, "%s %llu\n", all[i].name, (unsigned long long)all[i].value);
    }
}

void metrics_write(struct exporter *exporter, FILE *out) {
    put_processes(exporter, out);
    put_own(exporter, out);
    if (exporter->pusher)
        put_push(exporter, out);
}
