#include "tools/callgrind/target/counts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "engine/tool.h"
#include "tools/callgrind/target/callers.h"
#include "tools/callgrind/target/functions.h"
#include "tools/callgrind/target/simulate.h"

enum { BUCKETS = 1 << 16 };
#define FILE_PLACE 0x401000000000ul // where the counts are mapped if nothing is there

struct counts_header *counts_shared;
struct counts_id *counts_ids;
bool counts_many_events;
unsigned counts_events_end = 1;
uint8_t counts_group[COUNTS_EVENTS];

static uint8_t *file;
static uint8_t *lengths_pool;
static uint64_t *function_pcs;
static uint32_t id_buckets[BUCKETS], function_buckets[BUCKETS];
static uint32_t *id_next, *function_next;
static uint32_t *first_of, *next_of; // ids, by function and in it

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t free_threads[COUNTS_THREADS];
static unsigned free_thread_count;
static struct counts_frame *kept_frames; // of the thread that forks
static uint32_t kept_frame_count;
static bool collects_at_start = true;
static uint8_t usual_callers, usual_levels; // told apart
static uint8_t group_events[COUNTS_EVENTS];
static unsigned group_size = 1;

static void give_up(const char *reason) {
    tool_give_up("Nothing can be counted: %s", reason);
}

void *counts_reserve(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        give_up("out of memory");
    return memory;
}

// The whole of it is mapped at once, so that no descriptor is left for the target to meet. Where no
// heap has notes there is room: the kernel's own choice may lie across the target's memory if that
// is to go upwards (setarch -L).
static void open_file(void) {
    int fd = memfd_create("quern-counts", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || !fd_set_size(fd, COUNTS_SIZE) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
        give_up(errno == EFBIG ? "is the size of files limited (ulimit -f)?"
                               : "a file for the counts cannot be made");
    void *wish = file ? file : (void *)FILE_PLACE;
    void *memory = mmap(wish, COUNTS_SIZE, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_NORESERVE | (file ? MAP_FIXED : 0), fd, 0);
    if (memory == MAP_FAILED)
        give_up("is the address space limited (ulimit -v)?");
    file = memory;
    tool_give_file(fd);
    close(fd);
}

void counts_start(void) {
    open_file();
    counts_shared = (struct counts_header *)file;
    counts_ids = (struct counts_id *)(file + COUNTS_AT_IDS);
    lengths_pool = file + COUNTS_AT_LENGTHS;
    function_pcs = (uint64_t *)(file + COUNTS_AT_FUNCTIONS);
    id_next = counts_reserve(sizeof *id_next * COUNTS_IDS);
    first_of = counts_reserve(sizeof *first_of * COUNTS_FUNCTIONS);
    next_of = counts_reserve(sizeof *next_of * COUNTS_IDS);
    function_next = counts_reserve(sizeof *function_next * COUNTS_FUNCTIONS);
    // Number 0 of everything stands for none.
    counts_shared->ids = counts_shared->functions = 1;
    counts_shared->events = 1u << COUNTS_IR;
    counts_shared->magic = COUNTS_MAGIC;
    events_of_function = counts_reserve(COUNTS_FUNCTIONS);
    events_owner = counts_reserve(sizeof *events_owner * COUNTS_FUNCTIONS);
    events_object = counts_reserve(sizeof *events_object * COUNTS_FUNCTIONS);
    simulate_start();
}

// The supervisor reads while this thread waits; others go on.
void counts_dump(bool write, const char *why) {
    uint32_t before = __atomic_load_n(&counts_shared->answers, __ATOMIC_SEQ_CST);
    const struct timespec second = {.tv_sec = 1};
    tool_ask_report(write, why);
    for (int i = 0; i < 10 && __atomic_load_n(&counts_shared->answers, __ATOMIC_SEQ_CST) == before;
         i++)
        syscall(SYS_futex, &counts_shared->answers, FUTEX_WAIT, before, &second, NULL, 0);
}

void counts_dump_at(const char *option, uint32_t function) {
    char why[64];
    snprintf(why, sizeof why, "%s=@%llx", option, (unsigned long long)function_pcs[function]);
    counts_dump(true, why);
}

static bool is_said(const char *option, const char *wanted) {
    const char *value = tool_option(option);
    return value && strcmp(value, wanted) == 0;
}

static bool mark_functions(const char *option, uint8_t events) {
    const char *pattern = NULL;
    bool any = false;
    while ((pattern = tool_option_next(option, pattern))) {
        functions_mark(pattern, (struct function_marks){.events = events});
        any = true;
    }
    return any;
}

// NUMBER,FUNCTION, any number of times. Whether there are any.
static bool mark_numbers(const char *option, bool callers) {
    const char *text = NULL;
    bool any = false;
    while ((text = tool_option_next(option, text))) {
        char *pattern;
        unsigned long number = strtoul(text, &pattern, 10);
        functions_mark(pattern + 1, (struct function_marks){.callers = callers ? number + 1 : 0,
                                                            .levels = callers ? 0 : number + 1});
        any = true;
    }
    return any;
}

static void choose_contexts(void) {
    const char *callers = tool_option("separate-callers"), *levels = tool_option("separate-recs");
    bool marked = mark_numbers("separate-callers-of", true);
    marked |= mark_numbers("separate-recs-of", false);
    usual_callers = callers ? atoi(callers) : 0;
    usual_levels = levels ? atoi(levels) : 2;
    levels_skip_direct = is_said("skip-direct-rec", "yes");
    if (!marked && !usual_callers && usual_levels == 2 && !levels_skip_direct)
        return;
    callers_wanted = counts_reserve(COUNTS_FUNCTIONS);
    levels_wanted = counts_reserve(COUNTS_FUNCTIONS);
    callers_start();
}

void counts_choose(void) {
    bool toggles = mark_functions("toggle-collect", FUNCTION_TOGGLES);
    bool acts = mark_functions("dump-before", FUNCTION_DUMPS_BEFORE) |
                mark_functions("dump-after", FUNCTION_DUMPS_AFTER) |
                mark_functions("zero-before", FUNCTION_ZEROES_BEFORE) |
                mark_functions("fn-skip", FUNCTION_SKIPPED) |
                mark_functions("pop-on-jump", FUNCTION_ENDS_AT_JUMP);
    counts_shared->on = !is_said("instr-atstart", "no") && !is_said("instr-at-start", "no");
    collects_at_start = !toggles && !is_said("collect-atstart", "no");
    choose_contexts();
    events_may_be_plain = !callers_on && !toggles && !acts && tool_can_set_counters_quickly();
    counts_shared->plain = events_may_be_plain;
}

void counts_caches(const struct counts_cache shapes[3]) {
    memcpy(counts_shared->caches, shapes, sizeof counts_shared->caches);
}

void counts_count_event(enum counts_event event) {
    if (!counts_group[event]) {
        counts_group[event] = group_size;
        group_events[group_size++] = event;
    }
    counts_shared->events |= 1u << event;
    counts_many_events = true;
    if (counts_events_end <= event)
        counts_events_end = event + 1;
}

void counts_collect_jumps(void) {
    counts_shared->collects_jumps = 1;
}

void counts_incomplete(void) {
    counts_shared->incomplete = 1;
}

// ---- threads -----------------------------------------------------------------------------------

static void point_into(struct thread *thread, uint8_t *part) {
    thread->counts = (struct counts_thread *)part;
    thread->edges = (struct counts_edge *)(part + COUNTS_AT_EDGES);
    thread->frames = thread->top = thread->noted =
        (struct counts_frame *)(part + COUNTS_AT_FRAMES) + 1;
    thread->counts->noted = 0;
    thread->frames[-1].sp = UINT64_MAX;
    thread->frames[COUNTS_FRAMES].sp = UINT64_MAX;
    thread->counters = (uint64_t *)(part + COUNTS_AT_COUNTERS);
    thread->contexts = (void *)(part + COUNTS_AT_CONTEXTS);
    thread->edge_events = (void *)(part + COUNTS_AT_EDGE_EVENTS);
    thread->frame_events = (void *)(part + COUNTS_AT_FRAME_EVENTS);
    thread->counts->in_use = 1;
    thread->recurses = part + COUNTS_AT_RECURSES;
    thread->area = thread->shown = 0;
}

// What a thread needs to find things in its part.
static void reserve_tables(struct thread *thread) {
    thread->depth = counts_reserve(sizeof *thread->depth * COUNTS_FUNCTIONS);
    thread->last_edge = counts_reserve(sizeof *thread->last_edge * COUNTS_IDS);
    thread->recent = counts_reserve(sizeof *thread->recent * RECENT_EDGES);
    thread->buckets = counts_reserve(sizeof *thread->buckets * EDGE_BUCKETS);
    thread->next_edge = counts_reserve(sizeof *thread->next_edge * COUNTS_EDGES);
    thread->own_areas = counts_reserve(sizeof *thread->own_areas * COUNTS_FUNCTIONS);
}

static void free_tables(const struct thread *thread) {
    munmap(thread->depth, sizeof *thread->depth * COUNTS_FUNCTIONS);
    munmap(thread->last_edge, sizeof *thread->last_edge * COUNTS_IDS);
    munmap(thread->recent, sizeof *thread->recent * RECENT_EDGES);
    munmap(thread->buckets, sizeof *thread->buckets * EDGE_BUCKETS);
    munmap(thread->next_edge, sizeof *thread->next_edge * COUNTS_EDGES);
    munmap(thread->own_areas, sizeof *thread->own_areas * COUNTS_FUNCTIONS);
}

void counts_thread_started(void) {
    struct thread *thread = tool_thread_state();
    pthread_mutex_lock(&lock);
    uint32_t number = free_thread_count                         ? free_threads[--free_thread_count]
                      : counts_shared->threads < COUNTS_THREADS ? counts_shared->threads++
                                                                : COUNTS_THREADS;
    pthread_mutex_unlock(&lock);
    if (number == COUNTS_THREADS)
        counts_incomplete(); // no room for this thread's counts
    uint8_t *part = number < COUNTS_THREADS ? file + COUNTS_AT_THREADS + number * COUNTS_THREAD_SIZE
                                            : counts_reserve(COUNTS_THREAD_SIZE);
    thread->number = number;
    reserve_tables(thread);
    thread->words = tool_thread_words();
    memset(thread->words, 0, TOOL_WORDS * sizeof *thread->words);
    thread->function = 0;
    point_into(thread, part);
    tool_set_counters(thread_counters(thread));
    thread->collects = collects_at_start;
    thread_update(thread);
    edges_index(thread);
    callers_thread_start(thread);
    simulate_thread_start(thread);
}

void counts_thread_ended(void) {
    struct thread *thread = tool_thread_state();
    thread_finish(thread);
    callers_thread_end(thread);
    simulate_thread_end(thread);
    free_tables(thread);
    if (thread->number == COUNTS_THREADS)
        munmap(thread->counts, COUNTS_THREAD_SIZE);
    pthread_mutex_lock(&lock);
    if (thread->number < COUNTS_THREADS)
        free_threads[free_thread_count++] = thread->number;
    pthread_mutex_unlock(&lock);
}

// ---- fork --------------------------------------------------------------------------------------

void counts_forking(void) {
    const struct thread *thread = tool_thread_state();
    free(kept_frames);
    kept_frame_count = thread->top - thread->frames;
    kept_frames = malloc(kept_frame_count * sizeof *kept_frames + 1);
    if (kept_frames)
        memcpy(kept_frames, thread->frames, kept_frame_count * sizeof *kept_frames);
    else
        kept_frame_count = 0;
}

static void *copy_of(const void *from, size_t size) {
    void *copy = malloc(size + 1);
    if (!copy)
        give_up("out of memory");
    return memcpy(copy, from, size);
}

static void put_back(void *to, void *copy, size_t size) {
    memcpy(to, copy, size);
    free(copy);
}

static void start_from_nothing(struct thread *thread) {
    for (unsigned i = 0; i < TOOL_WORDS; i++)
        if (i != WORD_SITE)
            thread->words[i] = 0;
    memset(thread->totals, 0, sizeof thread->totals);
    memset(thread->at_pause, 0, sizeof thread->at_pause);
}

// The tables are the same in the child, so that its translated code goes on working; its counters
// and edges start from nothing. What was called before the fork is still active.
void counts_forked(void) {
    struct thread *thread = tool_thread_state();
    struct counts_header known = *counts_shared;
    uint32_t context_count = thread->counts->contexts, area = thread->area;
    size_t ids_size = known.ids * sizeof *counts_ids;
    size_t pcs_size = known.functions * sizeof *function_pcs;
    size_t contexts_size = (context_count + 1) * sizeof *thread->contexts;
    void *ids = copy_of(counts_ids, ids_size);
    void *lengths = copy_of(lengths_pool, known.lengths);
    void *pcs = copy_of(function_pcs, pcs_size);
    void *recurses = copy_of(thread->recurses, known.functions);
    void *contexts = copy_of(thread->contexts, contexts_size);
    uint32_t area_count = thread->counts->areas;
    void *areas = copy_of(thread->counts->area, area_count * sizeof *thread->counts->area);
    open_file();
    put_back(counts_ids, ids, ids_size);
    put_back(lengths_pool, lengths, known.lengths);
    put_back(function_pcs, pcs, pcs_size);
    known.threads = 1;
    *counts_shared = known;
    free_thread_count = 0;
    thread->number = 0;
    start_from_nothing(thread);
    threads_forked(thread);
    point_into(thread, file + COUNTS_AT_THREADS);
    put_back(thread->recurses, recurses, known.functions);
    put_back(thread->contexts, contexts, contexts_size);
    put_back(thread->counts->area, areas, area_count * sizeof *thread->counts->area);
    thread->counts->areas = area_count;
    thread->counts->contexts = context_count;
    edges_forget(thread);
    frames_restore(thread, kept_frames, kept_frame_count, area);
    tool_set_counters(thread_counters(thread));
}

// A child of vfork has the memory of its parent, the file and the thread's state included. It gets
// another state, with a part that is nobody's; the engine puts the parent's back.
void counts_vforking(void) {
    struct thread *thread = tool_thread_state(), *child = malloc(sizeof *child);
    if (!child)
        give_up("out of memory");
    const struct counts_thread *counts = thread->counts;
    uint32_t functions = counts_shared->functions;
    *child = *thread;
    reserve_tables(child);
    point_into(child, counts_reserve(COUNTS_THREAD_SIZE));
    memcpy(child->depth, thread->depth, functions * sizeof *child->depth);
    memcpy(child->recurses, thread->recurses, functions);
    memcpy(child->contexts, thread->contexts, (counts->contexts + 1) * sizeof *child->contexts);
    memcpy(child->counts->area, counts->area, counts->areas * sizeof *counts->area);
    child->counts->areas = counts->areas;
    child->counts->contexts = counts->contexts;
    edges_index(child);
    callers_thread_start(child);
    frames_restore(child, thread->frames, thread->top - thread->frames, thread->area);
    child->simulation = NULL;
    thread->child = child->child = child;
}

void counts_vforked(void) {
    struct thread *thread = tool_thread_state(), *child = thread->child;
    *thread = *child;
    tool_set_counters(thread_counters(thread));
    simulate_thread_start(thread);
    child->simulation = thread->simulation;
}

void counts_vfork_made(void) {
    struct thread *thread = tool_thread_state(), *child = thread->child;
    thread->child = NULL;
    thread_child_gone(thread, child);
    child->paused = true; // nothing that it leaves behind counts
    simulate_thread_end(child);
    simulate_thread_again(thread);
    callers_thread_end(child);
    free_tables(child);
    munmap(child->counts, COUNTS_THREAD_SIZE);
    free(child);
}

// ---- ids and functions -------------------------------------------------------------------------

#pragma GCC push_options
#pragma GCC target("general-regs-only")

uint32_t counts_first_of(uint32_t function) {
    return __atomic_load_n(&first_of[function], __ATOMIC_ACQUIRE);
}

uint32_t counts_next_of(uint32_t id) {
    return next_of[id];
}

uint32_t counts_home_of(uint32_t function) {
    uint32_t id = counts_first_of(function);
    while (id &&
           (counts_ids[id].kind != COUNTS_JUMP || counts_ids[id].pc != function_pcs[function]))
        id = counts_next_of(id);
    return id;
}

#pragma GCC pop_options

static unsigned bucket_of(uint64_t pc, unsigned more) {
    return hash_bucket(pc * 31 + more, 16);
}

uint32_t counts_function(uint64_t pc) {
    uint32_t *bucket = &function_buckets[bucket_of(pc, 0)];
    for (uint32_t at = *bucket; at; at = function_next[at])
        if (function_pcs[at] == pc)
            return at;
    if (counts_shared->functions == COUNTS_FUNCTIONS) {
        counts_incomplete();
        return 0;
    }
    uint32_t at = counts_shared->functions;
    struct code_place place = functions_at(pc);
    struct function_marks marks = {0};
    if (place.function == pc)
        marks = place.marks;
    events_of_function[at] = marks.events;
    events_object[at] = place.object;
    events_owner[at] = at;
    if (callers_on) {
        callers_wanted[at] = marks.callers ? marks.callers - 1 : usual_callers;
        levels_wanted[at] = marks.levels ? marks.levels - 1 : usual_levels;
    }
    function_pcs[at] = pc;
    function_next[at] = *bucket;
    *bucket = at;
    counts_shared->functions++;
    return at;
}

static bool is_same(const struct counts_id *id, const struct counts_id *wanted,
                    const uint8_t *lengths) {
    return id->pc == wanted->pc && id->kind == wanted->kind && id->count == wanted->count &&
           id->function == wanted->function &&
           (lengths ? memcmp(lengths_pool + id->lengths, lengths, id->count) == 0
                    : id->lengths == wanted->lengths);
}

// Several ids in a row are found by the first.
static uint32_t find_or_add(const struct counts_id *wanted, unsigned number,
                            const uint8_t *lengths) {
    uint32_t *bucket = &id_buckets[bucket_of(wanted->pc, wanted->kind << 16 | wanted->count)];
    for (uint32_t at = *bucket; at; at = id_next[at])
        if (is_same(&counts_ids[at], wanted, lengths))
            return at;
    if (counts_shared->ids + number > COUNTS_IDS ||
        (lengths && counts_shared->lengths + wanted->count > COUNTS_LENGTHS)) {
        counts_incomplete();
        return 0;
    }
    uint32_t at = counts_shared->ids;
    memcpy(&counts_ids[at], wanted, number * sizeof *wanted);
    if (lengths) {
        counts_ids[at].lengths = counts_shared->lengths;
        memcpy(lengths_pool + counts_shared->lengths, lengths, wanted->count);
        counts_shared->lengths += wanted->count;
    }
    id_next[at] = *bucket;
    *bucket = at;
    counts_shared->ids += number;
    for (uint32_t i = at; i < at + number; i++) {
        next_of[i] = first_of[wanted->function];
        __atomic_store_n(&first_of[wanted->function], i, __ATOMIC_RELEASE);
    }
    return at;
}

uint32_t counts_run(uint64_t pc, uint32_t function, const uint8_t *lengths, unsigned count) {
    struct counts_id id = {.pc = pc, .function = function, .count = count, .kind = COUNTS_RUN};
    return find_or_add(&id, 1, lengths);
}

static uint32_t add_site(const struct counts_id *site) {
    struct counts_id ids[COUNTS_EVENTS] = {*site};
    for (unsigned i = 1; i < group_size; i++)
        ids[i] = (struct counts_id){.pc = site->pc,
                                    .function = site->function,
                                    .kind = COUNTS_EVENT,
                                    .count = group_events[i]};
    return find_or_add(ids, group_size, NULL);
}

uint32_t counts_site(uint64_t pc, uint32_t function, unsigned kind) {
    return add_site(&(struct counts_id){.pc = pc, .function = function, .kind = kind});
}

uint32_t counts_site_to_plt(uint64_t pc, uint32_t function) {
    return add_site(
        &(struct counts_id){.pc = pc, .function = function, .kind = COUNTS_JUMP, .count = 1});
}

uint32_t counts_system_call(uint64_t pc, uint32_t function, enum counts_kind kind) {
    struct counts_id ids[3];
    for (unsigned i = 0; i < 3; i++)
        ids[i] = (struct counts_id){
            .pc = pc, .function = function, .kind = kind, .count = COUNTS_SYS_COUNT + i};
    return find_or_add(ids, 3, NULL);
}

uint32_t counts_branch(uint64_t pc, uint32_t function, uint64_t target, bool conditional) {
    struct counts_id id = {.pc = pc,
                           .function = function,
                           .lengths = (uint32_t)(target - pc),
                           .count = conditional,
                           .kind = COUNTS_BRANCH};
    return find_or_add(&id, 1, NULL);
}

uint32_t counts_events(uint64_t pc, uint32_t function, enum counts_kind kind,
                       enum counts_event first, enum counts_event second, uint32_t size) {
    bool misses = first >= COUNTS_I1MR && first <= COUNTS_D1MW;
    enum counts_event events[6] = {first, second, first - COUNTS_I1MR + COUNTS_ILDMR};
    unsigned number = misses && simulate_write_back ? 3 : 2;
    if (misses && simulate_uses)
        for (enum counts_event event = COUNTS_ACCOST1; event <= COUNTS_SPLOSS2; event++)
            events[number++] = event;
    struct counts_id ids[6];
    for (unsigned i = 0; i < number; i++)
        ids[i] = (struct counts_id){
            .pc = pc, .function = function, .lengths = size, .count = events[i], .kind = kind};
    return find_or_add(ids, number, NULL);
}
