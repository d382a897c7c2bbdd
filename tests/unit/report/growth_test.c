// Growth over time, of recordings that are made up: no clock, no program, the same in every run.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/diagnose/growth.h"
#include "report/shared/own.h"
#include "unit.h"

#define SECOND 1000000000ull
#define BLOCKS 2000

enum { KEPT = 1, CHURN = 2, EARLY = 3 };

struct run {
    struct recording_writer *writer;
    struct heap_sink sink;
    struct heap_block kept[BLOCKS];
    uint64_t number, time;
    uint32_t thread;
};

static void allocate(struct run *run, struct heap_block *block, uint32_t stack, uint64_t size) {
    *block = (struct heap_block){.number = ++run->number,
                                 .size = size,
                                 .capacity = heap_rounded(size),
                                 .time = run->time,
                                 .stack = stack,
                                 .thread = run->thread};
    run->sink.event(run->writer, &(struct heap_event){.kind = HEAP_ALLOCATED,
                                                      .thread = run->thread,
                                                      .time = run->time,
                                                      .block = block});
}

static void release(struct run *run, const struct heap_block *block) {
    run->sink.event(run->writer, &(struct heap_event){.kind = HEAP_FREED,
                                                      .thread = run->thread,
                                                      .time = run->time,
                                                      .before = *block});
}

static int start(struct run *run) {
    int fd = memfd_create("run", 0);
    *run = (struct run){.thread = 1};
    run->writer = recording_create(dup(fd), &(struct recording_process){.pid = 1, .command = "c"});
    recording_sink(run->writer, &run->sink);
    run->sink.thread(run->writer, 1, 100);
    for (uint32_t stack = 1; stack <= EARLY; stack++)
        run->sink.stack(run->writer, stack, (uint64_t[]){stack}, 1, false);
    return fd;
}

// Something else of the program's comes and goes all the time.
static void churn(struct run *run) {
    struct heap_block block;
    allocate(run, &block, CHURN, 500);
    release(run, &block);
}

// Ten seconds in which blocks of one stack are kept.
static void grow(struct run *run) {
    for (int i = 0; i < BLOCKS; i++) {
        run->time += 10 * SECOND / BLOCKS;
        allocate(run, &run->kept[i], KEPT, 1000);
        churn(run);
    }
}

// Reads the recording and judges; to be freed by growth_free.
static struct growth *look(struct run *run, int fd, struct heap_file *file) {
    CHECK_EQ(recording_close(run->writer, &(struct recording_end){.time = run->time}), 0);
    struct heap_file again;
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    char *problem = heap_file_read(fd, file, NULL, 0);
    CHECK(!problem);
    struct growth *growth = growth_new(file);
    struct heap_sink sink;
    growth_sink(growth, &sink);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    problem = heap_file_read(fd, &again, &sink, 1);
    CHECK(!problem);
    heap_file_free(&again);
    close(fd);
    return growth;
}

// What the view says; to be freed.
static char *view(struct run *run, int fd) {
    struct heap_file file;
    struct growth *growth = look(run, fd, &file);
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    growth_view(out, growth, 5, 5);
    fclose(out);
    growth_free(growth);
    heap_file_free(&file);
    return text;
}

static bool has(const char *text, const char *part) {
    if (!strstr(text, part))
        NOTE("there is no '%s' in:\n%s", part, text);
    return strstr(text, part) != NULL;
}

TEST(what_is_never_freed_grows) {
    static struct run run;
    int fd = start(&run);
    grow(&run);
    char *text = view(&run, fd);
    CHECK(has(text, "until 10.000 s: 1\n"));
    CHECK(has(text, "  +200,000 ± 0 bytes a second"));
    free(text);
}

TEST(what_is_freed_at_the_end_has_grown) {
    static struct run run;
    int fd = start(&run);
    grow(&run);
    for (int i = 0; i < BLOCKS; i++) {
        run.time += 20000;
        release(&run, &run.kept[i]);
        // A program says goodbye while it is at it.
        if (i % 50 == 49)
            churn(&run);
    }
    char *text = view(&run, fd);
    CHECK(has(text, "until 9.945 s: 1\n"));
    CHECK(has(text, "does not count)\n1. Memory that only grows (likely)\n  +200,"));
    CHECK(has(text, "1,989,000 in 1,989 blocks"));
    free(text);
}

// Freed slowly over a third of the run: the shutdown is still one.
TEST(a_long_shutdown_is_left_out) {
    static struct run run;
    int fd = start(&run);
    grow(&run);
    for (int i = 0; i < BLOCKS; i++) {
        run.time += 5 * SECOND / BLOCKS;
        release(&run, &run.kept[i]);
    }
    char *text = view(&run, fd);
    CHECK(has(text, "until 9.845 s: 1\n"));
    free(text);
}

// On a busy machine the process rests in the middle of it.
TEST(a_shutdown_with_a_pause_is_one) {
    static struct run run;
    int fd = start(&run);
    grow(&run);
    for (int i = 0; i < BLOCKS; i++) {
        run.time += 2 * SECOND / BLOCKS + (i == BLOCKS - 10 ? 2 * SECOND : 0);
        release(&run, &run.kept[i]);
    }
    char *text = view(&run, fd);
    CHECK(has(text, " s: 1\n"));
    free(text);
}

// On a machine that hardly lets it run, it rests as long while it works.
TEST(a_starved_program_ends_slowly) {
    static struct run run;
    int fd = start(&run);
    for (int i = 0; i < BLOCKS; i++) {
        run.time += i % 10 == 0 ? 3 * SECOND : 1000;
        allocate(&run, &run.kept[i], KEPT, 1000);
        churn(&run);
    }
    for (int i = 0; i < BLOCKS; i++) {
        run.time += i == 1 || i == BLOCKS / 2 ? 8 * SECOND : 1000;
        release(&run, &run.kept[i]);
    }
    run.time += 9 * SECOND;
    char *text = view(&run, fd);
    CHECK(has(text, " s: 1\n"));
    free(text);
}

// What was built early and then used for long has not grown, whenever it is freed.
TEST(what_has_settled_does_not_grow) {
    static struct run run;
    int fd = start(&run);
    for (int i = 0; i < BLOCKS; i++) {
        run.time += SECOND / BLOCKS;
        allocate(&run, &run.kept[i], EARLY, 1000);
    }
    churn(&run);
    run.time += 9 * SECOND;
    for (int i = 0; i < BLOCKS; i++)
        release(&run, &run.kept[i]);
    char *text = view(&run, fd);
    CHECK(has(text, "until 10.000 s: 0\n"));
    free(text);
}

// A cache that is emptied in the middle is no shutdown.
TEST(the_middle_is_not_the_end) {
    static struct run run;
    int fd = start(&run);
    grow(&run);
    for (int i = 0; i < BLOCKS; i++)
        release(&run, &run.kept[i]);
    grow(&run);
    char *text = view(&run, fd);
    CHECK(has(text, "until 20.000 s: 0\n"));
    free(text);
}

// ---- containers --------------------------------------------------------------------------------

static void resize(struct run *run, struct heap_block *block, uint64_t size) {
    struct heap_block before = *block;
    block->size = size;
    block->capacity = heap_resized(before.capacity, size);
    run->sink.event(run->writer, &(struct heap_event){.kind = HEAP_RESIZED,
                                                      .thread = run->thread,
                                                      .time = run->time,
                                                      .before = before,
                                                      .block = block});
}

// A vector takes 400 bytes at each step, up to a number of steps.
static void fill_vector(struct run *run, int most, bool by_resize) {
    struct heap_block block;
    uint64_t content = 0;
    allocate(run, &block, KEPT, 1024);
    for (int i = 0; i < BLOCKS; i++) {
        run->time += 10 * SECOND / BLOCKS;
        churn(run);
        content += i < most ? 400 : 0;
        if (content <= block.size)
            continue;
        struct heap_block old = block;
        if (by_resize) {
            resize(run, &block, 2 * block.size);
        } else {
            allocate(run, &block, KEPT, 2 * old.size);
            release(run, &old);
        }
    }
}

// Its capacity has not changed since the middle of the run; its content has.
TEST(a_vector_that_doubles_grows) {
    for (int by_resize = 0; by_resize < 2; by_resize++) {
        static struct run run;
        int fd = start(&run);
        fill_vector(&run, BLOCKS, by_resize);
        char *text = view(&run, fd);
        CHECK(has(text, "until 10.000 s: 1\n"));
        CHECK(has(text, "1. A buffer that only grows (likely)\n"));
        free(text);
    }
}

TEST(a_vector_that_is_filled_early_does_not_grow) {
    for (int by_resize = 0; by_resize < 2; by_resize++) {
        static struct run run;
        int fd = start(&run);
        fill_vector(&run, BLOCKS / 3, by_resize);
        char *text = view(&run, fd);
        CHECK(has(text, "until 10.000 s: 0\n"));
        free(text);
    }
}

// Two threads have a table of pointers each. A table makes the entry that it is enlarged for before
// it releases the smaller one, and all of it is small.
TEST(small_tables_of_threads_are_containers) {
    static struct run run;
    int fd = start(&run);
    struct heap_block tables[2];
    uint64_t count[2] = {0};
    run.sink.thread(run.writer, 2, 101);
    for (uint32_t i = 0; i < 2; i++) {
        run.thread = i + 1;
        allocate(&run, &tables[i], KEPT, 16);
    }
    for (uint32_t i = 0; i < 400; i++) {
        run.time += 10 * SECOND / 400;
        run.thread = i % 2 + 1;
        struct heap_block old = tables[i % 2], entry;
        bool is_full = ++count[i % 2] * 8 > old.size;
        if (is_full)
            allocate(&run, &tables[i % 2], KEPT, 2 * old.size);
        allocate(&run, &entry, KEPT, 5000);
        if (is_full)
            release(&run, &old);
        churn(&run);
    }
    char *text = view(&run, fd);
    CHECK(has(text, "1. Memory of each thread that only grows (likely)\n"));
    free(text);
}

// One thread enlarges the table. Another releases smaller blocks after larger ones, by stacks whose
// innermost frames are the allocator's, as the table's are.
TEST(blocks_of_another_function_are_no_container) {
    static struct run run;
    int fd = start(&run);
    struct heap_block table, entry, others[4];
    run.sink.thread(run.writer, 2, 101);
    run.sink.stack(run.writer, 4, (uint64_t[]){7, 8, 1}, 3, false);
    for (uint32_t i = 0; i < 4; i++)
        run.sink.stack(run.writer, 5 + i, (uint64_t[]){7, 8, 2 + i}, 3, false);
    allocate(&run, &table, 4, 1024);
    run.thread = 2;
    allocate(&run, &others[0], 5, 100);
    for (uint32_t i = 1; i < 4; i++) {
        allocate(&run, &others[i], 5 + i, 100u << i);
        release(&run, &others[i - 1]);
    }
    run.thread = 1;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        run.time += 10 * SECOND / BLOCKS;
        allocate(&run, &entry, 4, 300);
        struct heap_block old = table;
        if (i * 8 > old.size) {
            allocate(&run, &table, 4, 2 * old.size);
            release(&run, &old);
        }
        churn(&run);
    }
    char *text = view(&run, fd);
    CHECK(has(text, "1. Memory that only grows (likely)\n"));
    CHECK(has(text, "a container that was enlarged 4 times"));
    free(text);
}

// ---- causes ------------------------------------------------------------------------------------

// One function allocates for five others; what one of these keeps grows.
TEST(a_function_that_allocates_for_others_is_no_cause) {
    enum { CALLERS = 5, WRAPPED = 10 };
    static struct run run;
    int fd = start(&run);
    struct heap_block held[CALLERS];
    run.sink.mapping(
        run.writer,
        &(struct heap_mapping){.start = 0x1000, .end = 0x9000, .path = "/home/nobody/server"});
    for (uint32_t i = 0; i < CALLERS; i++) {
        run.sink.stack(run.writer, WRAPPED + i, (uint64_t[]){0x1100, 0x2000 + 0x100 * i}, 2, false);
        allocate(&run, &held[i], WRAPPED + i, 5000);
    }
    for (uint32_t i = 0; i < BLOCKS; i++) {
        run.time += 10 * SECOND / BLOCKS;
        allocate(&run, &run.kept[i], WRAPPED, 1000);
        release(&run, &held[1 + i % (CALLERS - 1)]);
        allocate(&run, &held[1 + i % (CALLERS - 1)], WRAPPED + 1 + i % (CALLERS - 1), 5000);
    }
    char *text = view(&run, fd);
    CHECK(has(text, "until 10.000 s: 1\n"));
    CHECK(has(text, "to 2,005,000 in 2,001 blocks"));
    free(text);
}

// A function that each request calls makes thirteen blocks, each by a function of its own: what is
// kept is one thing. `opens`: it keeps a block of its own.
static char *view_of_parts(bool opens) {
    enum { PARTS = 13, MADE = 10, OPENED = 30 };
    static struct run run;
    int fd = start(&run);
    char name[PARTS][16];
    for (uint32_t i = 0; i < PARTS; i++) {
        uint64_t at = 0x1000 + 0x100 * i;
        snprintf(name[i], sizeof name[i], "make_%u", i);
        run.sink.stack(run.writer, MADE + i, (uint64_t[]){at + 1, 0x5001, 0x6001}, 3, false);
        recording_code(run.writer, &(struct heap_code){at, at + 2, name[i], "a.c", 10 + i});
    }
    run.sink.stack(run.writer, OPENED, (uint64_t[]){0x5001, 0x6001}, 2, false);
    recording_code(run.writer, &(struct heap_code){0x5000, 0x5002, "open_session", "a.c", 50});
    recording_code(run.writer, &(struct heap_code){0x6000, 0x6002, "serve", "a.c", 60});
    for (uint32_t i = 0; i < BLOCKS; i++) {
        struct heap_block block;
        run.time += 10 * SECOND / BLOCKS;
        for (uint32_t j = 0; j < PARTS; j++)
            allocate(&run, &block, MADE + j, 100 + 10 * j);
        if (opens)
            allocate(&run, &block, OPENED, 200);
        for (uint32_t j = 0; j < 10; j++)
            churn(&run);
    }
    return view(&run, fd);
}

TEST(parts_of_one_thing_are_one_cause) {
    for (int opens = 0; opens < 2; opens++) {
        char *text = view_of_parts(opens);
        CHECK(has(text, "until 10.000 s: 1\n"));
        CHECK(has(text, "open_session"));
        CHECK(has(text, opens ? "+456," : "+416,"));
        CHECK(has(text, opens ? "13 further functions add" : "12 further functions add"));
        free(text);
    }
}

// It has filled a table when it started, and lived on for long with little to do.
TEST(a_start_is_no_growth) {
    static struct run run;
    int fd = start(&run);
    for (int i = 0; i < BLOCKS; i++) {
        run.time += 50000;
        allocate(&run, &run.kept[i], KEPT, 1000);
        churn(&run);
    }
    run.time += 120 * SECOND;
    for (int i = 0; i < 20; i++)
        churn(&run);
    char *text = view(&run, fd);
    CHECK(has(text, " s: 0\n"));
    free(text);
}

// ---- what is quiet -----------------------------------------------------------------------------

// A cache that drops its oldest entry for each new one, once it is full.
TEST(a_bound_is_no_growth) {
    static struct run run;
    int fd = start(&run);
    for (int i = 0; i < BLOCKS; i++) {
        run.time += 10 * SECOND / BLOCKS;
        allocate(&run, &run.kept[i], KEPT, 1000);
        churn(&run);
        if (i >= 400)
            release(&run, &run.kept[i - 400]);
    }
    char *text = view(&run, fd);
    CHECK(has(text, "until 10.000 s: 0\n"));
    free(text);
}

// Given back, and the program waits: that is no shutdown.
TEST(what_is_given_back_has_not_grown) {
    static struct run run;
    int fd = start(&run);
    grow(&run);
    for (int i = 0; i < BLOCKS; i++)
        release(&run, &run.kept[i]);
    run.time += 2 * SECOND;
    char *text = view(&run, fd);
    CHECK(has(text, "until 12.000 s: 0\n"));
    free(text);
}

// A load ends, its sessions are released, and the program works on for a little while.
TEST(a_load_that_stops_has_not_grown) {
    static struct run run;
    int fd = start(&run);
    grow(&run);
    for (int i = 0; i < BLOCKS; i++)
        release(&run, &run.kept[i]);
    for (int i = 0; i < 90; i++) {
        churn(&run);
        churn(&run);
    }
    char *text = view(&run, fd);
    CHECK(has(text, " s: 0\n"));
    free(text);
}

// The load ends long before the program: idle time changes nothing, except that nothing is added.
TEST(waiting_hides_no_growth) {
    static struct run run;
    int fd = start(&run);
    grow(&run);
    run.time += 90 * SECOND;
    char *text = view(&run, fd);
    CHECK(has(text, "until 100.000 s: 1\n"));
    CHECK(has(text, "  +200,000 ± 0 bytes a second"));
    free(text);
}

// Nothing is ever freed: the program may be building something.
TEST(building_is_no_growth) {
    static struct run run;
    int fd = start(&run);
    for (int i = 0; i < BLOCKS; i++) {
        run.time += 10 * SECOND / BLOCKS;
        allocate(&run, &run.kept[i], KEPT, 1000);
    }
    char *text = view(&run, fd);
    CHECK(has(text, "until 10.000 s: 0\n"));
    free(text);
}

// That is said, as no verdict of growth; not of one that gives back what it builds.
TEST(a_program_that_frees_nothing_is_told_so) {
    for (int is_busy = 0; is_busy < 2; is_busy++) {
        static struct run run;
        int fd = start(&run);
        for (int i = 0; i < BLOCKS; i++) {
            run.time += 10 * SECOND / BLOCKS;
            allocate(&run, &run.kept[i], KEPT, 5000);
            if (is_busy)
                churn(&run);
        }
        struct heap_file file;
        struct diagnoses diagnoses = {0};
        struct growth *growth = look(&run, fd, &file);
        growth_judge_kept(growth, &diagnoses);
        CHECK_EQ(diagnoses.count, is_busy ? 0 : 1);
        CHECK(is_busy || diagnoses.items[0].kind == DIAGNOSIS_KEPT);
        CHECK_EQ(diagnoses_rate(&diagnoses), 0);
        diagnoses_free(&diagnoses);
        growth_judge(growth, &diagnoses);
        CHECK_EQ(diagnoses.count, is_busy ? 1 : 0);
        diagnoses_free(&diagnoses);
        growth_free(growth);
        heap_file_free(&file);
    }
}

// ---- own frames --------------------------------------------------------------------------------

TEST(own_frames) {
    CHECK(own_frame("main", "/home/me/main.c", "/home/me/main"));
    CHECK(own_frame("twelve::send", "src/main.rs", "/home/me/twelve"));
    CHECK(own_frame("twelve::send", NULL, "/home/me/twelve"));
    CHECK(!own_frame("poll", "/usr/share/cargo/registry/tokio-1.24.2/src/task.rs",
                     "/home/me/twelve"));
    CHECK(!own_frame("alloc", "/rustc/59807616/library/alloc/src/alloc.rs", "/home/me/twelve"));
    CHECK(!own_frame("<alloc::vec::Vec<T> as core::ops::Drop>::drop", NULL, "/home/me/twelve"));
    CHECK(!own_frame("std::vector<int>::push_back(int)", NULL, "/home/me/main"));
    CHECK(!own_frame("std::vector<int>::push_back(int)", "/usr/include/c++/12/bits/stl_vector.h",
                     "/home/me/main"));
    CHECK(!own_frame("void std::vector<int>::_M_realloc_insert<int, char>(int*, char&&)", NULL,
                     "/home/me/main"));
    CHECK(!own_frame("std::enable_if<(1)>::type std::__invoke_r<void>(void (&)())", NULL,
                     "/home/me/main"));
    CHECK(!own_frame("decltype (f(0)) std::forward<int>(int&)", NULL, "/home/me/main"));
    CHECK(own_frame("std::string mine::name_of<int>(std::string const&)", NULL, "/home/me/main"));
    CHECK(own_frame("(anonymous namespace)::serve(std::string)", NULL, "/home/me/main"));
    CHECK(own_frame("mine::Log::operator<< (std::string)", NULL, "/home/me/main"));
    CHECK(own_frame("mine::run()::{lambda(std::string)#1}::operator()(std::string) const", NULL,
                    "/home/me/main"));
    CHECK(!own_frame("xmalloc", "/home/me/main.c", "/home/me/main"));
    CHECK(!own_frame("fopen", NULL, "/usr/lib/x86_64-linux-gnu/libc.so.6"));
    CHECK(own_frame("serverCron", NULL, "/usr/bin/redis-server"));
    CHECK(!own_frame(NULL, NULL, "/home/me/main"));
    // A Python that the user has built has absolute paths.
    CHECK(!own_frame("list_resize", "/home/me/cpython/Objects/listobject.c",
                     "/home/me/.pyenv/lib/libpython3.11.so.1.0"));
    CHECK(!own_frame("list_resize", "/home/me/cpython/Objects/listobject.c", "/home/me/bin/python3.12"));
    CHECK(own_frame("handle", "/home/me/server.py", SYMBOLS_GENERATED_CODE));
}

TEST(runtime_frames) {
    CHECK(own_is_runtime("alloc::raw_vec::RawVec<T,A>::grow_one", NULL));
    CHECK(own_is_runtime("<alloc::alloc::Global as core::alloc::Allocator>::allocate", NULL));
    CHECK(own_is_runtime("void std::vector<int>::_M_realloc_insert<int>(int*)", NULL));
    CHECK(own_is_runtime("insert", "/usr/include/c++/12/bits/stl_tree.h"));
    CHECK(!own_is_runtime("hyper::proto::h1::io::WriteBuf<B>::new", NULL));
    CHECK(!own_is_runtime("g_hash_table_insert", NULL));
}

TEST(the_user_chooses_own_frames) {
    own_choose("src/net/*,mine::*,libplugin.so");
    CHECK(own_frame("serve", "/home/me/src/net/tcp.c", "/home/me/server"));
    CHECK(!own_frame("main", "/home/me/src/main.c", "/home/me/server"));
    CHECK(own_frame("std::string mine::name<int>(int)", NULL, "/home/me/server"));
    CHECK(own_frame(NULL, NULL, "/usr/lib/libplugin.so"));
    CHECK(own_object("/usr/lib/libplugin.so"));
    CHECK(!own_object("/home/me/server"));
    own_choose(NULL);
    CHECK(own_frame("main", "/home/me/src/main.c", "/home/me/server"));
}

// Names of a stack from the innermost frame on, all of the program's own sources; the own one.
static size_t own_of(const char *const *names) {
    struct own_search search = {0};
    size_t own = SIZE_MAX;
    for (size_t i = 0; names[i]; i++)
        if (own_search_next(&search, names[i], "/home/me/main.cc", "/home/me/main"))
            own = i;
    return own;
}

TEST(closures_belong_to_functions) {
    static const struct {
        const char *name, *bare;
    } expected[] = {{"a::f::{{closure}}", "a::f"},
                    {"a::f::{closure#0}::{closure#1}", "a::f"},
                    {"a::{impl#0}::f::{async_fn#0}", "a::{impl#0}::f"},
                    {"<a::T<a::f::{{closure}}> as b::U>::call", NULL},
                    {"mine::run(int)::{lambda(int)#1}::operator()(int) const", "mine::run(int)"},
                    {"Box.fill.<locals>.<listcomp>", "Box.fill"},
                    {"outer.<locals>.inner", NULL},
                    {"{closure#0}", ""},
                    {"operator->", NULL}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const char *bare = expected[i].bare ? expected[i].bare : expected[i].name;
        CHECK_EQ(own_without_closures(expected[i].name), strlen(bare));
    }
    CHECK(own_is_within("a::f::{{closure}}", "a.rs", "a::f", "a.rs"));
    CHECK(!own_is_within("a::f", "a.rs", "a::g", "a.rs"));
    CHECK(own_is_within("{closure#0}", "a.rs", "{async_fn#0}", "a.rs"));
    CHECK(!own_is_within("{closure#0}", "a.rs", "{async_fn#0}", "b.rs"));
    CHECK(!own_is_within("{async_fn#0}", "a.rs", "{async_fn#1}", "a.rs"));
}

TEST(an_allocator_of_the_program_is_not_own) {
    // A panic may come through this one.
    CHECK_EQ(own_of((const char *[]){"take", "__rust_try", "main", NULL}), 0);
    CHECK_EQ(own_of((const char *[]){"take", "__rustc::rust_begin_unwind", "main", NULL}), 0);
    CHECK_EQ(own_of((const char *[]){"take", "__rustc[1a]::__rust_alloc", "list", NULL}), 2);
    CHECK_EQ(own_of((const char *[]){"take", "main", NULL}), 0);
    CHECK_EQ(own_of((const char *[]){"take", "operator new(unsigned long)", "list", "main", NULL}),
             2);
    CHECK_EQ(
        own_of((const char *[]){"<a::Mine as core::alloc::global::GlobalAlloc>::alloc",
                                "__rust_alloc", "alloc::alloc::alloc", "a::send", "a::main", NULL}),
        3);
    CHECK_EQ(own_of((const char *[]){"take", "malloc", NULL}), 0);
    CHECK_EQ(own_of((const char *[]){"list", "malloc_everything", "main", NULL}), 0);
}

UNIT_MAIN()
