#include "tools/flame/supervisor/flame.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "tools/flame/supervisor/code.h"
#include "tools/flame/supervisor/names.h"

#define STACKS_BYTES ((size_t)64 << 20)
#define NODES_MAX    ((size_t)1 << 20)
#define IMAGES_MAX   4096

struct image {
    int pid;      // 0: it has ended, and is kept for its names
    uint32_t key; // of its stacks, and in the place of a pid for symbols
    uint32_t threads;
    bool followed;
    bool has_dump; // its generated code has times (symbols_is_jit_dump)
    char *name;
    struct flame_space *space;
};

// ---- images ----

static struct image *find_image(struct flame *flame, int pid) {
    for (size_t i = 0; pid > 0 && i < flame->image_count; i++)
        if (flame->images[i]->pid == pid)
            return flame->images[i];
    return NULL;
}

static struct image *add_image(struct flame *flame, int pid, const char *name,
                               struct flame_space *space) {
    struct image *image = base_allocate(sizeof *image);
    *image = (struct image){.pid = pid,
                            .key = ++flame->last_key,
                            .threads = 1,
                            .name = base_copy(name),
                            .space = space};
    *vector_push(flame->images, flame->image_count) = image;
    return image;
}

static void free_image(struct flame *flame, struct image *image) {
    symbols_end(flame->symbols, (pid_t)image->key);
    flame_space_free(image->space);
    free(image->name);
    free(image);
}

static const struct image *image_of(struct flame *flame, uint32_t key) {
    for (size_t i = 0; i < flame->image_count; i++)
        if (flame->images[i]->key == key)
            return flame->images[i];
    return NULL;
}

static const char *name_of(struct flame *flame, uint32_t key) {
    const struct image *image = image_of(flame, key);
    return image ? image->name : "?";
}

// ---- from addresses to the tree ----

static const char *code_at(struct flame *flame, pid_t key, uint64_t address, uint64_t *offset) {
    const struct image *image = image_of(flame, (uint32_t)key);
    return image ? flame_space_file(image->space, address, offset) : NULL;
}

static bool read_code(void *context, pid_t key, uint64_t address, uint8_t *bytes, size_t size) {
    struct flame *flame = context;
    uint64_t offset;
    const char *path = code_at(flame, key, address, &offset);
    return path && flame_code_read(flame->code, path, offset, bytes, size);
}

static uint64_t read_pointer(void *context, pid_t key, uint64_t from, uint64_t pointer) {
    struct flame *flame = context;
    uint64_t offset;
    int64_t distance = (int64_t)(pointer - from);
    const char *path = code_at(flame, key, from, &offset);
    return path && flame_code_pointer(flame->code, path, offset, &distance)
               ? from + (uint64_t)distance
               : 0;
}

// FUNCTION (FILE:LINE), by the line that ran or by the first one of the function.
static void add_frame_name(void *context, uint64_t mark, struct text *name) {
    const struct flame *flame = context;
    int32_t line;
    const struct interpreted_code *code = interpreted_find(&flame->interpreted, mark, &line);
    if (!code)
        return;
    const char *slash = strrchr(code->file, '/');
    text_format(name, "%s (%s:%d)", code->name, slash ? slash + 1 : code->file,
                flame->settings.python_lines ? line : code->first_line);
}

static void name_stacks(struct flame *flame, struct stack_counts *counts, struct calltree *to) {
    struct flame_names_options options = {.show_below_main =
                                              flame->run->request->stacks.show_below_main,
                                          .fold_runtimes = flame->settings.fold_runtimes,
                                          .fold_others = flame->settings.fold_others,
                                          .context = flame,
                                          .read_code = read_code,
                                          .read_pointer = read_pointer,
                                          .add_frame_name = add_frame_name,
                                          .moments = &flame->moments};
    flame->code = flame_code_open();
    struct flame_names *names = flame_names_new(flame->symbols, to, &options);
    for (size_t i = 0; i < counts->count; i++) {
        const struct stack_count *stack = &counts->entries[i];
        flame_names_add(names, (pid_t)stack->key,
                        flame->settings.children ? name_of(flame, stack->key) : NULL,
                        &counts->addresses[stack->first], stack->size, stack->broken, stack->value);
    }
    flame_names_free(names);
    flame_code_close(flame->code);
    flame->code = NULL;
    stack_counts_clear(counts);
}

static void work_off(struct flame *flame) {
    name_stacks(flame, &flame->stacks, flame->tree);
    if (flame->waits_tree)
        name_stacks(flame, &flame->waits.stacks, flame->waits_tree);
    size_t kept = 0;
    for (size_t i = 0; i < flame->image_count; i++) {
        if (flame->images[i]->pid)
            flame->images[kept++] = flame->images[i];
        else
            free_image(flame, flame->images[i]);
    }
    flame->image_count = kept;
}

// ---- records ----

static bool wants_samples(void *context, int pid) {
    struct flame *flame = context;
    const struct image *image = find_image(flame, pid);
    return image && image->followed;
}

static void on_code(void *context, const struct python_code *code, size_t size) {
    struct flame *flame = context;
    interpreted_add(&flame->interpreted, code, size);
}

// Puts marks of the interpreter's frames behind the addresses; the number of both. A frame that is
// not known would shift the others: then there are none.
static size_t add_marks(struct flame *flame, const struct sampler_sample *sample,
                        uint64_t *addresses, size_t count) {
    for (size_t i = 0; i < sample->frame_count; i++) {
        addresses[count + i] = interpreted_mark(&flame->interpreted, &sample->frames[i]);
        if (!addresses[count + i])
            return count;
    }
    return count + sample->frame_count;
}

// Keeps addresses in generated code together with the time.
static void keep_time(struct flame *flame, const struct image *image,
                      const struct sampler_sample *sample, uint64_t *addresses, size_t count) {
    uint64_t offset;
    for (size_t i = 0; i < count; i++)
        if (addresses[i] < SYMBOLS_KERNEL_START &&
            !flame_space_file(image->space, addresses[i], &offset))
            addresses[i] = moments_add(&flame->moments, addresses[i], sample->time);
}

static void on_sample(void *context, const struct sampler_sample *sample) {
    struct flame *flame = context;
    uint64_t addresses[FLAME_STACK_MAX];
    struct image *image = find_image(flame, sample->pid);
    if (!image || !image->followed)
        return;
    unsigned end;
    size_t kernel = sample->kernel_count < FLAME_KERNEL_MAX ? sample->kernel_count : 0;
    if (kernel)
        memcpy(addresses, sample->kernel, kernel * sizeof *addresses);
    size_t count = kernel + flame_space_walk(image->space, sample, addresses + kernel, &end);
    if (image->has_dump)
        keep_time(flame, image, sample, addresses, count);
    if (sample->left) {
        flame_waits_left(&flame->waits, sample->tid, sample->time, image->key, addresses, count,
                         flame_end_is_broken(end));
        return;
    }
    count = add_marks(flame, sample, addresses, count);
    flame->sample_count += sample->periods;
    flame->ends[end] += sample->periods;
    stack_counts_add(&flame->stacks, image->key, addresses, count, flame_end_is_broken(end),
                     sample->periods);
    if (stack_counts_bytes(&flame->stacks) > STACKS_BYTES)
        work_off(flame);
}

static void on_map(void *context, const struct sampler_mapping *mapping) {
    struct flame *flame = context;
    struct image *image = find_image(flame, mapping->pid);
    if (!image || !image->followed)
        return;
    flame_space_map(image->space, mapping);
    image->has_dump |= symbols_is_jit_dump(mapping->path);
    struct sampler_mapping first;
    if (flame_space_first_part(mapping, &first))
        symbols_map(flame->symbols, (pid_t)image->key, first.start, first.end, first.offset,
                    first.path, NULL);
    // Code that is in no file, such as [vdso], has at least that name.
    symbols_map(flame->symbols, (pid_t)image->key, mapping->start, mapping->end, mapping->offset,
                mapping->path, NULL);
}

static void end_image(struct flame *flame, struct image *image) {
    image->pid = 0;
    flame_space_rest(image->space);
    if (flame->image_count > IMAGES_MAX)
        work_off(flame);
}

static void on_forked(void *context, int parent_pid, int child_pid) {
    struct flame *flame = context;
    struct image *parent = find_image(flame, parent_pid);
    struct image *before = find_image(flame, child_pid);
    if (parent && parent == before) {
        parent->threads++;
        return;
    }
    if (before)
        end_image(flame, before);
    if (!parent || !parent->followed)
        return;
    struct image *child =
        add_image(flame, child_pid, parent->name, flame_space_copy(parent->space));
    child->followed = true;
    child->has_dump = parent->has_dump;
    symbols_fork(flame->symbols, (pid_t)parent->key, (pid_t)child->key);
    symbols_generated_by(flame->symbols, (pid_t)child->key, child_pid);
}

static void on_executed(void *context, int pid, const char *name) {
    struct flame *flame = context;
    struct image *before = find_image(flame, pid);
    if (before)
        end_image(flame, before);
    struct image *image = add_image(flame, pid, name, flame_space_new());
    image->followed =
        flame->settings.children || (pid == flame->run->main_pid && !flame->main_executed);
    if (pid == flame->run->main_pid && !image->followed) {
        free(flame->left_out);
        flame->left_out = base_copy(name);
    }
    if (image->followed)
        symbols_generated_by(flame->symbols, (pid_t)image->key, pid);
    flame->main_executed |= pid == flame->run->main_pid;
}

static void on_thread_ended(void *context, int pid) {
    struct flame *flame = context;
    struct image *image = find_image(flame, pid);
    if (image && --image->threads == 0)
        end_image(flame, image);
}

static void on_switched(void *context, int tid, uint64_t time, bool back, bool displaced) {
    struct flame *flame = context;
    if (back)
        flame_waits_back(&flame->waits, tid, time);
    else if (displaced)
        flame_waits_displaced(&flame->waits, tid);
    if (stack_counts_bytes(&flame->waits.stacks) > STACKS_BYTES)
        work_off(flame);
}

// ---- the run ----

static bool complain(char *problem) {
    log_complain("%s", problem);
    free(problem);
    return false;
}

bool flame_choose(struct tool_run *run) {
    struct flame *flame = run->state;
    const struct flame_settings *settings = &flame->settings;
    struct sampler_settings how = {.kind = settings->sampler,
                                   .frequency = settings->frequency,
                                   .stack_bytes = settings->stack_bytes,
                                   .without_kernel = settings->without_kernel,
                                   .kernel_stacks = settings->kernel_stacks,
                                   .off_cpu = settings->off_cpu,
                                   .interpreters = settings->interpreters,
                                   .children = settings->children,
                                   .agent = settings->agent,
                                   .is_static = settings->is_static};
    char *problem = NULL;
    flame->sampler = sampler_new(&how, &problem);
    return flame->sampler || complain(problem);
}

void flame_enter(struct tool_run *run, int wire, int config) {
    const struct flame *flame = run->state;
    sampler_enter(flame->sampler);
}

bool flame_open(struct tool_run *run) {
    struct flame *flame = run->state;
    struct sampler_sink sink = {.context = flame,
                                .wants = wants_samples,
                                .sample = on_sample,
                                .map = on_map,
                                .code = on_code,
                                .forked = on_forked,
                                .executed = on_executed,
                                .thread_ended = on_thread_ended,
                                .switched = on_switched};
    char *problem = NULL;
    flame->run = run;
    if (!sampler_open(flame->sampler, run->main_pid, &sink, &problem))
        return complain(problem);
    struct symbols_options options = run->request->symbols;
    options.keep_unmapped = true;
    options.own_debug_only = !flame->settings.all_inlined || options.no_inlined;
    options.no_lines = true;
    options.full_names = true;
    flame->symbols = symbols_new(&options);
    flame->tree = calltree_new(NODES_MAX);
    if (flame->settings.off_cpu)
        flame->waits_tree = calltree_new(NODES_MAX);
    return true;
}

void flame_drain(struct tool_run *run) {
    struct flame *flame = run->state;
    if (flame->sampler)
        sampler_drain(flame->sampler, false);
}

bool flame_request(struct tool_run *run, const char *request, struct text *answer) {
    struct flame *flame = run->state;
    bool on = strcmp(request, "on") == 0;
    if (!flame->sampler)
        return false;
    if (strcmp(request, "status") == 0) {
        sampler_drain(flame->sampler, false);
        text_format(answer, "ok tool flame, samples %llu, sampling %s",
                    (unsigned long long)flame->sample_count, flame->is_off ? "off" : "on");
        return true;
    }
    if (!on && strcmp(request, "off") != 0)
        return false;
    sampler_switch(flame->sampler, on);
    flame->is_off = !on;
    text_string(answer, "ok");
    return true;
}

int64_t flame_timeout(struct tool_run *run) {
    const struct flame *flame = run->state;
    return flame->sampler ? sampler_interval(flame->sampler) : -1;
}

size_t flame_gather(struct flame *flame) {
    size_t left = 0;
    sampler_drain(flame->sampler, true);
    for (size_t i = 0; i < flame->image_count; i++) {
        struct image *image = flame->images[i];
        left += image->followed && image->pid && image->pid != flame->run->main_pid &&
                kill(image->pid, 0) == 0;
        image->pid = 0;
    }
    work_off(flame);
    calltree_finish(flame->tree);
    if (flame->waits_tree)
        calltree_finish(flame->waits_tree);
    return left;
}

void flame_close(struct flame *flame) {
    free(flame->images);
    free(flame->left_out);
    if (flame->tree)
        calltree_free(flame->tree);
    if (flame->waits_tree)
        calltree_free(flame->waits_tree);
    flame_waits_free(&flame->waits);
    interpreted_free(&flame->interpreted);
    moments_free(&flame->moments);
    if (flame->symbols)
        symbols_free(flame->symbols);
    if (flame->sampler)
        sampler_close(flame->sampler);
    flame->images = NULL;
    flame->left_out = NULL;
    flame->tree = flame->waits_tree = NULL;
    flame->symbols = NULL;
    flame->sampler = NULL;
}
