#include "tools/flame/supervisor/flame.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/template.h"
#include "base/text.h"
#include "profile/stacks/calltree.h"
#include "profile/stacks/stack_counts.h"
#include "report/flame/names.h"
#include "report/flame/flamegraph.h"
#include "report/flame/folded.h"
#include "report/flame/stack_file.h"
#include "report/shared/tree_text.h"
#include "tools/flame/supervisor/code.h"
#include "tools/flame/supervisor/space.h"
#include "tools/flame/supervisor/waits.h"
#include "supervisor/log.h"
#include "supervisor/present.h"
#include "tools/flame/supervisor/sampler.h"

#define STACKS_BYTES ((size_t)64 << 20)
#define NODES_MAX    ((size_t)1 << 20)
#define IMAGES_MAX   4096
#define TOP_MAX      10

struct image {
    int pid;      // 0: it has ended, and is kept for its names
    uint32_t key; // of its stacks, and in the place of a pid for symbols
    uint32_t threads;
    bool followed;
    char *name;
    struct flame_space *space;
};

static const struct supervisor_request *request;
static struct sampler *sampler;
static int main_pid;
static bool main_executed;
static char *left_out; // what the main process has executed, and is not sampled; NULL: nothing
static struct image **images;
static size_t image_count;
static uint32_t last_key;
static struct symbols *symbols;
static struct stack_counts stacks;
static struct calltree *tree;
static struct calltree *waits_tree; // NULL: not wanted
static uint64_t ends[FLAME_END_COUNT];
static uint64_t sample_count;
static bool is_off; // by `quern ctl`

// ---- images ----

static struct image *find_image(int pid) {
    for (size_t i = 0; pid > 0 && i < image_count; i++)
        if (images[i]->pid == pid)
            return images[i];
    return NULL;
}

static struct image *add_image(int pid, const char *name, struct flame_space *space) {
    struct image *image = base_allocate(sizeof *image);
    *image = (struct image){
        .pid = pid, .key = ++last_key, .threads = 1, .name = base_copy(name), .space = space};
    images = base_reallocate(images, (image_count + 1) * sizeof *images);
    images[image_count++] = image;
    return image;
}

static void free_image(struct image *image) {
    symbols_end(symbols, (pid_t)image->key);
    flame_space_free(image->space);
    free(image->name);
    free(image);
}

static const struct image *image_of(uint32_t key) {
    for (size_t i = 0; i < image_count; i++)
        if (images[i]->key == key)
            return images[i];
    return NULL;
}

static const char *name_of(uint32_t key) {
    const struct image *image = image_of(key);
    return image ? image->name : "?";
}

// ---- from addresses to the tree ----

static const char *code_at(pid_t key, uint64_t address, uint64_t *offset) {
    const struct image *image = image_of((uint32_t)key);
    return image ? flame_space_file(image->space, address, offset) : NULL;
}

static bool read_code(pid_t key, uint64_t address, uint8_t *bytes, size_t size) {
    uint64_t offset;
    const char *path = code_at(key, address, &offset);
    return path && flame_code_read(path, offset, bytes, size);
}

static uint64_t read_pointer(pid_t key, uint64_t from, uint64_t pointer) {
    uint64_t offset;
    int64_t distance = (int64_t)(pointer - from);
    const char *path = code_at(key, from, &offset);
    return path && flame_code_pointer(path, offset, &distance) ? from + (uint64_t)distance : 0;
}

static void name_stacks(struct stack_counts *counts, struct calltree *to) {
    struct flame_names_options options = {.show_below_main = request->stacks.show_below_main,
                                          .read_code = read_code,
                                          .read_pointer = read_pointer};
    struct flame_names *names = flame_names_new(symbols, to, &options);
    for (size_t i = 0; i < counts->count; i++) {
        const struct stack_count *stack = &counts->entries[i];
        flame_names_add(names, (pid_t)stack->key,
                        request->flame.children ? name_of(stack->key) : NULL,
                        &counts->addresses[stack->first], stack->size, stack->broken, stack->value);
    }
    flame_names_free(names);
    flame_code_close();
    stack_counts_clear(counts);
}

static void work_off(void) {
    name_stacks(&stacks, tree);
    if (waits_tree)
        name_stacks(flame_waits_stacks(), waits_tree);
    size_t kept = 0;
    for (size_t i = 0; i < image_count; i++) {
        if (images[i]->pid)
            images[kept++] = images[i];
        else
            free_image(images[i]);
    }
    image_count = kept;
}

// ---- records ----

static bool wants_samples(void *context, int pid) {
    const struct image *image = find_image(pid);
    return image && image->followed;
}

static void on_sample(void *context, const struct sampler_sample *sample) {
    static uint64_t addresses[FLAME_FRAMES_MAX];
    struct image *image = find_image(sample->pid);
    if (!image || !image->followed)
        return;
    unsigned end;
    size_t count = flame_space_walk(image->space, sample, addresses, &end);
    if (sample->left) {
        flame_waits_left(sample->tid, sample->time, image->key, addresses, count,
                         flame_end_is_broken(end));
        return;
    }
    sample_count += sample->periods;
    ends[end] += sample->periods;
    stack_counts_add(&stacks, image->key, addresses, count, flame_end_is_broken(end),
                     sample->periods);
    if (stack_counts_bytes(&stacks) > STACKS_BYTES)
        work_off();
}

static void on_map(void *context, const struct sampler_mapping *mapping) {
    struct image *image = find_image(mapping->pid);
    if (!image || !image->followed)
        return;
    flame_space_map(image->space, mapping);
    struct sampler_mapping first;
    if (flame_space_first_part(mapping, &first))
        symbols_map(symbols, (pid_t)image->key, first.start, first.end, first.offset, first.path,
                    NULL);
    // Code that is in no file, such as [vdso], has at least that name.
    symbols_map(symbols, (pid_t)image->key, mapping->start, mapping->end, mapping->offset,
                mapping->path, NULL);
}

static void end_image(struct image *image) {
    image->pid = 0;
    flame_space_rest(image->space);
    if (image_count > IMAGES_MAX)
        work_off();
}

static void on_forked(void *context, int parent_pid, int child_pid) {
    struct image *parent = find_image(parent_pid);
    struct image *before = find_image(child_pid);
    if (parent && parent == before) {
        parent->threads++;
        return;
    }
    if (before)
        end_image(before);
    if (!parent || !parent->followed)
        return;
    struct image *child = add_image(child_pid, parent->name, flame_space_copy(parent->space));
    child->followed = true;
    symbols_fork(symbols, (pid_t)parent->key, (pid_t)child->key);
}

static void on_executed(void *context, int pid, const char *name) {
    struct image *before = find_image(pid);
    if (before)
        end_image(before);
    struct image *image = add_image(pid, name, flame_space_new());
    image->followed = request->flame.children || (pid == main_pid && !main_executed);
    if (pid == main_pid && !image->followed) {
        free(left_out);
        left_out = base_copy(name);
    }
    main_executed |= pid == main_pid;
}

static void on_thread_ended(void *context, int pid) {
    struct image *image = find_image(pid);
    if (image && --image->threads == 0)
        end_image(image);
}

static void on_switched(void *context, int tid, uint64_t time, bool back, bool displaced) {
    if (back)
        flame_waits_back(tid, time);
    else if (displaced)
        flame_waits_displaced(tid);
    if (stack_counts_bytes(flame_waits_stacks()) > STACKS_BYTES)
        work_off();
}

// ---- the run ----

static bool complain(char *problem) {
    log_complain("%s", problem);
    free(problem);
    return false;
}

bool flame_choose(const struct supervisor_request *run) {
    const struct flame_settings *flame = &run->flame;
    if (!flame->frequency)
        return true;
    struct sampler_settings settings = {.kind = flame->sampler,
                                        .frequency = flame->frequency,
                                        .stack_bytes = flame->stack_bytes,
                                        .without_kernel = flame->without_kernel,
                                        .off_cpu = flame->off_cpu,
                                        .children = flame->children,
                                        .agent = flame->agent,
                                        .is_static = flame->is_static};
    char *problem = NULL;
    sampler = sampler_new(&settings, &problem);
    return sampler || complain(problem);
}

void flame_enter(void) {
    sampler_enter(sampler);
}

bool flame_open(const struct supervisor_request *run, pid_t pid) {
    if (!run->flame.frequency)
        return true;
    request = run;
    main_pid = pid;
    struct sampler_sink sink = {.wants = wants_samples,
                                .sample = on_sample,
                                .map = on_map,
                                .forked = on_forked,
                                .executed = on_executed,
                                .thread_ended = on_thread_ended,
                                .switched = on_switched};
    char *problem = NULL;
    if (!sampler_open(sampler, pid, &sink, &problem))
        return complain(problem);
    struct symbols_options options = run->symbols;
    options.keep_unmapped = true;
    options.own_debug_only = !run->flame.all_inlined || options.no_inlined;
    options.no_lines = true;
    symbols = symbols_new(&options);
    tree = calltree_new(NODES_MAX);
    if (run->flame.off_cpu)
        waits_tree = calltree_new(NODES_MAX);
    return true;
}

void flame_drain(void) {
    if (sampler)
        sampler_drain(sampler, false);
}

bool flame_wish(const char *wish, struct text *answer) {
    bool on = strcmp(wish, "on") == 0;
    if (!sampler)
        return false;
    if (strcmp(wish, "status") == 0) {
        sampler_drain(sampler, false);
        text_format(answer, "ok tool flame, samples %llu, sampling %s",
                    (unsigned long long)sample_count, is_off ? "off" : "on");
        return true;
    }
    if (!on && strcmp(wish, "off") != 0)
        return false;
    sampler_switch(sampler, on);
    is_off = !on;
    text_string(answer, "ok");
    return true;
}

int64_t flame_timeout(void) {
    return sampler ? sampler_interval(sampler) : -1;
}

// ---- reports ----

static double percent(uint64_t part) {
    return sample_count ? 100.0 * (double)part / (double)sample_count : 0;
}

static uint64_t broken_count(void) {
    uint64_t broken = 0;
    for (unsigned end = 0; end < FLAME_END_COUNT; end++)
        broken += flame_end_is_broken(end) ? ends[end] : 0;
    return broken;
}

static void show_top(void) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    tree_text_functions(out, tree, TOP_MAX);
    fclose(out);
    log_print(main_pid, LOG_USER, text);
    free(text);
}

// How complete the stacks are, and why others are not.
static void add_stacks(struct text *text) {
    uint64_t broken = broken_count();
    if (sample_count)
        text_format(text, "%.1f %% of the stacks are complete, %.1f %% cut short",
                    100 - percent(broken), percent(broken));
    else
        text_string(text, "The program took less CPU time than there is between two samples");
    if (left_out)
        text_format(text,
                    "\nThe program has executed another, %s, which is sampled with "
                    "--trace-children=yes",
                    left_out);
    for (unsigned end = 0; end < FLAME_END_COUNT; end++)
        if (flame_end_is_broken(end) && ends[end])
            text_format(text, "\n  %.1f %%: %s", percent(ends[end]), flame_end_text(end));
    if (ends[FLAME_END_NO_USER])
        text_format(text, "\n%.1f %% of the samples are of the kernel alone (exec, exit)",
                    percent(ends[FLAME_END_NO_USER]));
}

// Who has sampled, and what is missing therefore.
static void add_way(struct text *text, const struct sampler_counts *counts) {
    if (counts->by_timers)
        text_format(
            text,
            "\nBy CPU timers, which the kernel looks after when its clock ticks: %llu stacks, "
            "each for\nthe time since the one before",
            (unsigned long long)counts->taken);
    if (counts->cause)
        text_format(text, "\nNot by perf: %s", counts->cause);
    if (counts->never_begun)
        text_string(text, "\nThe sampler was not loaded into the program: it does not allow "
                          "LD_PRELOAD");
    if (!counts->kernel_is_in && !request->flame.without_kernel)
        text_string(text, "\nTime in the kernel is not sampled: kernel.perf_event_paranoid and the "
                          "capabilities\nof quern do not allow it");
}

static void show_counts(void) {
    struct sampler_counts counts = sampler_counts(sampler);
    struct text text = {0};
    text_format(&text, "%llu samples at %u Hz, %.2f s of CPU time; %llu lost\n",
                (unsigned long long)sample_count, request->flame.frequency,
                (double)sample_count / request->flame.frequency, (unsigned long long)counts.lost);
    add_stacks(&text);
    add_way(&text, &counts);
    if (tree->shortened)
        text_format(&text, "\n%.1f %% of the samples: the tree was full, inner calls are left out",
                    percent(tree->shortened));
    log_print(main_pid, LOG_USER, text.bytes);
    text_free(&text);
}

// A file by its template, written by `write`; its name, to be freed, or NULL after a message.
static char *write_file(const char *pattern, void (*write)(FILE *out)) {
    char *reason = NULL;
    char *path = template_expand(pattern, main_pid, 0, &reason);
    FILE *file = path ? fopen(path, "we") : NULL;
    bool written = file != NULL;
    if (file) {
        write(file);
        written = !ferror(file);
        written &= fclose(file) == 0;
    }
    if (!written)
        log_cannot_write(path ? path : pattern, reason ? reason : strerror(errno));
    free(reason);
    if (written)
        return path;
    free(path);
    return NULL;
}

// What the files say of the run; to be freed.
static struct stack_info describe_run(void) {
    struct text command = {0};
    struct text details = {0};
    present_command(&command, (const char *const *)request->argv);
    text_format(&details, "%llu samples at %u Hz, %.1f %% of the stacks complete",
                (unsigned long long)sample_count, request->flame.frequency,
                100 - percent(broken_count()));
    return (struct stack_info){.command = text_take(&command),
                               .unit = base_copy("samples"),
                               .details = text_take(&details),
                               .frequency = request->flame.frequency};
}

static struct stack_info describe_waits(void) {
    struct stack_info info = describe_run();
    struct text details = {0};
    text_format(&details, "off CPU: %.3f s in %llu waits", (double)flame_waits_time() / 1e9,
                (unsigned long long)flame_waits_count());
    free(info.details);
    free(info.unit);
    info.details = text_take(&details);
    info.unit = base_copy("microseconds");
    info.frequency = 0;
    return info;
}

static void put_graph(FILE *out, const struct calltree *of, struct stack_info info) {
    flamegraph_write(out, of,
                     &(struct flamegraph_options){.title = info.command,
                                                  .details = info.details,
                                                  .unit = info.unit,
                                                  .inverted = request->flame.inverted});
    stack_file_free(&info);
}

static void put_stacks(FILE *out, const struct calltree *of, struct stack_info info) {
    stack_file_write(out, of, &info);
    stack_file_free(&info);
}

static void write_graph(FILE *out) {
    put_graph(out, tree, describe_run());
}

static void write_stacks(FILE *out) {
    put_stacks(out, tree, describe_run());
}

static void write_waits_graph(FILE *out) {
    put_graph(out, waits_tree, describe_waits());
}

static void write_waits_stacks(FILE *out) {
    put_stacks(out, waits_tree, describe_waits());
}

static void write_folded(FILE *out) {
    folded_write(out, tree);
}

static void say_where(const char *what, char *path) {
    if (path && log_shows(0))
        log_format(main_pid, LOG_USER, "%s: %s", what, path);
    free(path);
}

static void show_left_over(void) {
    size_t left = 0;
    for (size_t i = 0; i < image_count; i++)
        left += images[i]->followed && images[i]->pid && images[i]->pid != main_pid &&
                kill(images[i]->pid, 0) == 0;
    if (left)
        log_format(main_pid, LOG_USER, "%zu child process%s still running, not sampled any more",
                   left, left == 1 ? " is" : "es are");
}

static void finish_waits(void) {
    calltree_finish(waits_tree);
    if (log_shows(0))
        log_format(main_pid, LOG_USER, "\nThreads waited %.3f s in all, %llu times",
                   (double)flame_waits_time() / 1e9, (unsigned long long)flame_waits_count());
    say_where("Flame graph of waits", write_file(request->flame.waits_file, write_waits_graph));
    say_where("Stacks of waits", write_file(request->flame.waits_stacks_file, write_waits_stacks));
    calltree_free(waits_tree);
    waits_tree = NULL;
    flame_waits_free();
}

// Of this process alone.
static double own_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void flame_finish(void) {
    if (!sampler)
        return;
    double before = own_seconds();
    sampler_drain(sampler, true);
    if (log_shows(0))
        show_left_over();
    for (size_t i = 0; i < image_count; i++)
        images[i]->pid = 0;
    work_off();
    calltree_finish(tree);
    if (log_shows(0)) {
        log_print(main_pid, LOG_USER, "");
        show_counts();
        if (sample_count) {
            log_print(main_pid, LOG_USER, "");
            show_top();
            log_print(main_pid, LOG_USER, "");
        }
    }
    say_where("Flame graph", write_file(request->flame.out_file, write_graph));
    say_where("Stacks", write_file(request->flame.stacks_file, write_stacks));
    if (request->flame.folded_file)
        say_where("Folded stacks", write_file(request->flame.folded_file, write_folded));
    if (waits_tree)
        finish_waits();
    if (log_shows(1))
        log_format(main_pid, LOG_USER,
                   "Quern's own CPU time: %.3f s until the program ended, %.3f s after that",
                   before, own_seconds() - before);
    free(images);
    images = NULL;
    free(left_out);
    left_out = NULL;
    calltree_free(tree);
    symbols_free(symbols);
    sampler_close(sampler);
    sampler = NULL;
}
