// The table of modules: readers that never wait, writers that come and go.

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "unwind/space.h"

// The module that a function of this process is in.
struct search {
    uint64_t address;
    struct unwind_image image;
    bool found;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *context) {
    struct search *search = context;
    struct unwind_image image;
    if (unwind_image_from_headers(&image, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr) &&
        search->address >= image.start && search->address < image.end) {
        search->image = image;
        search->found = true;
    }
    return search->found;
}

static struct unwind_image module_of(const void *address) {
    struct search search = {.address = (uint64_t)address};
    dl_iterate_phdr(look_at, &search);
    CHECK(search.found);
    return search.image;
}

// A module without unwind data, somewhere.
static struct unwind_image empty_image(uint64_t start, uint64_t end) {
    struct unwind_image image;
    memset(&image, 0, sizeof image);
    image.start = start;
    image.end = end;
    return image;
}

TEST(modules_are_found_by_address) {
    struct unwind_space space;
    CHECK_EQ(unwind_space_open(&space), UNWIND_OK);
    for (uint64_t i = 0; i < 500; i++) {
        // Not in rising order.
        uint64_t start = 0x10000 + (i * 7 % 500) * 0x1000;
        struct unwind_image image = empty_image(start, start + 0x800);
        CHECK_EQ(unwind_space_add(&space, &image), UNWIND_OK);
    }
    for (uint64_t i = 0; i < 500; i++) {
        uint64_t start = 0x10000 + i * 0x1000;
        struct module *module = unwind_space_find(&space, start + 0x7ff);
        CHECK(module && module->image.start == start);
        CHECK(unwind_space_find(&space, start) == module);
        CHECK(!unwind_space_find(&space, start + 0x800));
        CHECK(!unwind_space_find(&space, start - 1));
    }
    struct unwind_image image = empty_image(0x10700, 0x10900);
    CHECK_EQ(unwind_space_add(&space, &image), UNWIND_OVERLAP);
    CHECK_EQ(unwind_space_remove(&space, 0x10700, 0x12001), 3);
    CHECK(!unwind_space_find(&space, 0x10000));
    CHECK(!unwind_space_find(&space, 0x12000));
    CHECK(unwind_space_find(&space, 0x13000));
    CHECK_EQ(unwind_space_add(&space, &image), UNWIND_OK);
    unwind_space_close(&space);
}

TEST(sizes_of_a_table) {
    struct unwind_space space;
    struct unwind_sizes sizes;
    struct unwind_image image = module_of(qsort);
    CHECK_EQ(unwind_space_open(&space), UNWIND_OK);
    CHECK(!unwind_space_prepare(&space, image.start));
    CHECK_EQ(unwind_space_add(&space, &image), UNWIND_OK);
    CHECK(unwind_space_prepare(&space, (uint64_t)qsort));
    CHECK(unwind_space_sizes(&space, (uint64_t)qsort, &sizes));
    CHECK(sizes.functions > 1000 && sizes.rows > sizes.functions && sizes.bytes > sizes.rows * 6);
    CHECK_EQ(sizes.bad, 0);
    unwind_space_close(&space);
}

static long resident_pages(void) {
    long total, resident = 0;
    FILE *stream = fopen("/proc/self/statm", "r");
    CHECK(stream && fscanf(stream, "%ld %ld", &total, &resident) == 2);
    fclose(stream);
    return resident;
}

// A program that loads and unloads the same library for ever must not grow for ever.
TEST(loading_again_takes_no_more_memory) {
    struct unwind_space space;
    struct unwind_image image = module_of(qsort);
    CHECK_EQ(unwind_space_open(&space), UNWIND_OK);
    long before = 0;
    for (int i = 0; i < 60; i++) {
        CHECK_EQ(unwind_space_add(&space, &image), UNWIND_OK);
        CHECK(unwind_space_prepare(&space, (uint64_t)qsort));
        CHECK_EQ(unwind_space_remove(&space, image.start, image.end), 1);
        if (i == 5)
            before = resident_pages();
    }
    CHECK(resident_pages() < before + 60);
    unwind_space_close(&space);
}

// ---- a walk must see that a module was replaced ----

static uint64_t walk_two(struct unwind_space *space, struct unwind_thread *thread, uint64_t pc,
                         uint64_t *stack, size_t words, enum unwind_end *end) {
    struct unwind_registers registers = {
        .value = {[UNWIND_PC] = pc, [UNWIND_RSP] = (uint64_t)stack}};
    struct unwind_memory memory = {.low = (uint64_t)stack, .high = (uint64_t)(stack + words)};
    uint64_t pcs[2] = {0};
    unwind_stack(space, thread, &registers, &memory, pcs, 2, end);
    return pcs[1];
}

static struct {
    struct unwind_space space;
    struct unwind_image image;
    struct unwind_thread thread;
    uint64_t stack[4];
    enum unwind_end end; // of the last walk
} walked;

// A stack as it is when qsort has just been called, from 0x1111.
static void begin_walks(void) {
    memset(&walked, 0, sizeof walked);
    walked.image = module_of(qsort);
    walked.stack[0] = 0x1111;
    walked.stack[1] = 0x2222;
    CHECK_EQ(unwind_space_open(&walked.space), UNWIND_OK);
    CHECK_EQ(unwind_space_add(&walked.space, &walked.image), UNWIND_OK);
}

// So many words of the stack can be read.
static uint64_t walk_qsort(size_t words) {
    return walk_two(&walked.space, &walked.thread, (uint64_t)qsort, walked.stack, words,
                    &walked.end);
}

TEST(removal_empties_the_caches) {
    begin_walks();
    for (int i = 0; i < 2; i++)
        CHECK_EQ(walk_qsort(4), 0x1111);
    CHECK_EQ(walked.thread.counts.missed, 1);
    unwind_space_remove(&walked.space, walked.image.start, walked.image.end);
    CHECK_EQ(walk_qsort(4), 0);
    CHECK_EQ(walked.end, UNWIND_END_NO_MODULE);
    CHECK_EQ(walked.thread.counts.walks, 3);
    CHECK_EQ(walked.thread.counts.frames, 5);
    CHECK_EQ(walked.thread.counts.ends[UNWIND_END_NO_MODULE], 3);
    unwind_space_close(&walked.space);
}

// What a signal handler sees that has interrupted a walk of its own thread.
TEST(walk_within_a_walk_leaves_the_cache_alone) {
    static const struct unwind_cache_entry empty[UNWIND_CACHE_SIZE];
    begin_walks();
    walked.thread.walking = true;
    CHECK_EQ(walk_qsort(4), 0x1111);
    CHECK(walked.thread.walking);
    CHECK(memcmp(walked.thread.cache, empty, sizeof empty) == 0);
    walked.thread.walking = false;
    CHECK_EQ(walk_qsort(4), 0x1111);
    CHECK(!walked.thread.walking);
    CHECK(memcmp(walked.thread.cache, empty, sizeof empty) != 0);
    unwind_space_close(&walked.space);
}

TEST(walks_stay_within_the_stack) {
    begin_walks();
    CHECK_EQ(walk_qsort(1), 0x1111);
    CHECK_EQ(walk_qsort(0), 0);
    CHECK_EQ(walked.end, UNWIND_END_UNREADABLE);
    CHECK(strcmp(unwind_end_text(walked.end), "stack memory not readable") == 0);
    unwind_space_close(&walked.space);
}

// ---- readers and writers at once ----

static struct unwind_space shared;
static struct unwind_image shared_image;
static atomic_bool stop;
static atomic_long lookups, wrong;

static void *read_modules(void *argument) {
    static __thread struct unwind_thread thread;
    uint64_t stack[4] = {0x1111, 0x2222, 0, 0};
    enum unwind_end end;
    while (!stop) {
        // A module that is always there, and one that comes and goes.
        uint64_t start = 0x10000 + (uint64_t)lookups % 64 * 0x1000;
        struct module *module = unwind_space_find(&shared, start);
        if (module && module->image.start != start)
            wrong++;
        if (walk_two(&shared, &thread, (uint64_t)qsort, stack, 4, &end) != 0x1111)
            wrong++;
        lookups++;
    }
    return NULL;
}

TEST(readers_beside_a_writer) {
    pthread_t readers[3];
    shared_image = module_of(qsort);
    CHECK_EQ(unwind_space_open(&shared), UNWIND_OK);
    CHECK_EQ(unwind_space_add(&shared, &shared_image), UNWIND_OK);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&readers[i], NULL, read_modules, NULL), 0);
    long changes = 0;
    while (lookups < 200000 || changes < 1000) {
        uint64_t start = 0x10000 + (uint64_t)changes * 13 % 64 * 0x1000;
        struct unwind_image image = empty_image(start, start + 0x1000);
        if (unwind_space_add(&shared, &image) == UNWIND_OVERLAP)
            unwind_space_remove(&shared, start, start + 0x1000);
        changes++;
    }
    stop = true;
    for (int i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    NOTE("%ld lookups, %ld changes", (long)lookups, changes);
    CHECK_EQ(wrong, 0);
}

static struct unwind_thread signal_thread;
static volatile long signals;

static void on_alarm(int signal) {
    uint64_t stack[4] = {0x1111, 0x2222, 0, 0};
    enum unwind_end end;
    if (walk_two(&shared, &signal_thread, (uint64_t)qsort, stack, 4, &end) != 0x1111)
        wrong++;
    signals++;
}

// A signal handler that interrupts a writer, or a walk of its own thread, must get through.
TEST(signal_handler_beside_a_writer) {
    uint64_t stack[4] = {0x1111, 0x2222, 0, 0};
    enum unwind_end end;
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, NULL);
    for (long i = 0; signals < 500; i++) {
        uint64_t start = 0x10000 + (uint64_t)i * 13 % 64 * 0x1000;
        struct unwind_image image = empty_image(start, start + 0x1000);
        if (unwind_space_add(&shared, &image) == UNWIND_OVERLAP)
            unwind_space_remove(&shared, start, start + 0x1000);
        if (walk_two(&shared, &signal_thread, (uint64_t)qsort, stack, 4, &end) != 0x1111)
            wrong++;
    }
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK_EQ(wrong, 0);
}

// The first walks through a module may come at the same time, from everywhere.
static void *walk_first(void *argument) {
    static __thread struct unwind_thread thread;
    uint64_t stack[4] = {0x1111, 0x2222, 0, 0};
    enum unwind_end end;
    pthread_barrier_wait(argument);
    if (walk_two(&shared, &thread, (uint64_t)qsort, stack, 4, &end) != 0x1111)
        wrong++;
    return NULL;
}

TEST(first_walks_at_once) {
    for (int round = 0; round < 20; round++) {
        pthread_t threads[4];
        pthread_barrier_t barrier;
        unwind_space_remove(&shared, shared_image.start, shared_image.end);
        CHECK_EQ(unwind_space_add(&shared, &shared_image), UNWIND_OK);
        pthread_barrier_init(&barrier, NULL, 4);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, walk_first, &barrier), 0);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    CHECK_EQ(wrong, 0);
}

static void *change_for_ever(void *argument) {
    while (!stop) {
        struct unwind_image image = empty_image(0x10000, 0x11000);
        if (unwind_space_add(&shared, &image) == UNWIND_OVERLAP)
            unwind_space_remove(&shared, 0x10000, 0x11000);
    }
    return NULL;
}

// fork while another thread holds the lock: the child must be able to go on.
TEST(fork_beside_a_writer) {
    pthread_t writer;
    stop = false;
    CHECK_EQ(pthread_create(&writer, NULL, change_for_ever, NULL), 0);
    for (int i = 0; i < 200; i++) {
        int status = 0;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            signal(SIGALRM, SIG_DFL);
            alarm(600);
            unwind_space_after_fork(&shared);
            struct unwind_image image = empty_image(0x900000, 0x901000);
            bool good = unwind_space_add(&shared, &image) == UNWIND_OK &&
                        unwind_space_find(&shared, 0x900000) &&
                        unwind_space_find(&shared, (uint64_t)qsort);
            _exit(good ? 0 : 1);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    stop = true;
    pthread_join(writer, NULL);
}

UNIT_MAIN()
