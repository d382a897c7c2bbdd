// Growth over time, of recordings that are made up: no clock, no program, the same in every run.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "report/heap/views.h"
#include "unit.h"

#define SECOND 1000000000ull
#define BLOCKS 2000

enum { KEPT = 1, CHURN = 2, EARLY = 3 };

struct run {
    struct recording_writer *writer;
    struct heap_sink sink;
    struct heap_block kept[BLOCKS];
    uint64_t number, time;
};

static void allocate(struct run *run, struct heap_block *block, uint32_t stack, uint64_t size) {
    *block = (struct heap_block){.number = ++run->number,
                                 .size = size,
                                 .capacity = heap_rounded(size),
                                 .time = run->time,
                                 .stack = stack,
                                 .thread = 1};
    run->sink.event(run->writer,
                    &(struct heap_event){
                        .kind = HEAP_ALLOCATED, .thread = 1, .time = run->time, .block = block});
}

static void release(struct run *run, const struct heap_block *block) {
    run->sink.event(
        run->writer,
        &(struct heap_event){.kind = HEAP_FREED, .thread = 1, .time = run->time, .before = *block});
}

static int start(struct run *run) {
    int fd = memfd_create("run", 0);
    *run = (struct run){0};
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

// What the view says; to be freed.
static char *view(struct run *run, int fd) {
    CHECK_EQ(recording_close(run->writer, &(struct recording_end){.time = run->time}), 0);
    struct heap_file file, again;
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    char *text = NULL, *problem = heap_file_read(fd, &file, NULL, 0);
    CHECK(!problem);
    struct heap_growth *growth = heap_growth_new(&file);
    struct heap_sink sink;
    heap_growth_sink(growth, &sink);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    problem = heap_file_read(fd, &again, &sink, 1);
    CHECK(!problem);
    size_t size;
    FILE *out = open_memstream(&text, &size);
    heap_view_growth(out, growth, &(struct heap_view_options){.top = 5, .callers = 5});
    fclose(out);
    heap_growth_free(growth);
    heap_file_free(&again);
    heap_file_free(&file);
    close(fd);
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
    CHECK(has(text, "to 10.000 s: 1\n"));
    CHECK(has(text, "s: 1\n+199,990 bytes a second"));
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
    CHECK(has(text, "to 10.000 s: 1\n"));
    CHECK(has(text, "does not count)\n+200,"));
    CHECK(has(text, " -> 2,000,000), fit 100 %"));
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
    CHECK(has(text, "to 10.00"));
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
    CHECK(has(text, "to 10.000 s: 0\n"));
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
    CHECK(has(text, "to 20.000 s: 0\n"));
    free(text);
}

UNIT_MAIN()
