// Massif's snapshots, and massif.out files read back, whole and damaged.
#include <string.h>

#include "profile/heap/massif.h"
#include "report/massif/print.h"
#include "any.h"
#include "unit.h"

static const struct massif_options plain = {
    .time_unit = MASSIF_BYTES,
    .heap_admin = 8,
    .max_snapshots = 10,
    .detailed_freq = 10,
    .peak_inaccuracy = 1,
};

static struct heap_sink sink;
static void allocate(struct heap_block *block, uint64_t size, uint32_t stack) {
    *block = (struct heap_block){.size = size, .capacity = heap_rounded(size), .stack = stack};
    sink.event(sink.context, &(struct heap_event){.kind = HEAP_ALLOCATED, .block = block});
}

static void release(const struct heap_block *block) {
    sink.event(sink.context, &(struct heap_event){.kind = HEAP_FREED, .before = *block});
}

static struct massif *start(const struct massif_options *options) {
    struct massif *massif = massif_new(options);
    massif_sink(massif, &sink);
    return massif;
}

TEST(sizes_and_times) {
    struct massif *massif = start(&plain);
    struct heap_block block;
    size_t count;
    allocate(&block, 20, 3);
    release(&block);
    const struct massif_snapshot *snapshots = massif_snapshots(massif, &count);
    // The start, after the allocation, the peak before the release, after it.
    CHECK_EQ(count, 4);
    CHECK_EQ(snapshots[0].time, 0);
    CHECK_EQ(snapshots[1].time, 40);
    CHECK_EQ(snapshots[1].useful, 20);
    CHECK_EQ(snapshots[1].extra, 20);
    CHECK(snapshots[2].is_peak && snapshots[2].is_detailed);
    CHECK_EQ(snapshots[2].share_count, 1);
    CHECK_EQ(snapshots[2].shares[0].stack, 3);
    CHECK_EQ(snapshots[2].shares[0].bytes, 20);
    CHECK_EQ(snapshots[3].time, 80);
    CHECK_EQ(snapshots[3].useful + snapshots[3].extra, 0);
    massif_check(massif);
    massif_free(massif);
}

TEST(a_small_excess_is_no_peak) {
    struct massif *massif = start(&plain);
    struct heap_block first, second;
    size_t count;
    allocate(&first, 10000, 1);
    allocate(&second, 16, 2);
    release(&second);
    release(&first);
    const struct massif_snapshot *snapshots = massif_snapshots(massif, &count);
    size_t peaks = 0;
    for (size_t i = 0; i < count; i++) {
        peaks += snapshots[i].is_peak;
        CHECK(!snapshots[i].is_peak || snapshots[i].useful == 10016);
    }
    CHECK_EQ(peaks, 1);
    // Nothing larger by one percent has been there since.
    allocate(&first, 10080, 1);
    release(&first);
    snapshots = massif_snapshots(massif, &count);
    for (size_t i = 0; i < count; i++)
        CHECK(!snapshots[i].is_peak || snapshots[i].useful == 10016);
    massif_free(massif);
}

TEST(the_end_is_a_peak_if_nothing_was_larger) {
    struct massif *massif = start(&plain);
    struct heap_block block;
    size_t count;
    allocate(&block, 500, 1);
    sink.end(sink.context, 0);
    const struct massif_snapshot *snapshots = massif_snapshots(massif, &count);
    CHECK(snapshots[count - 1].is_peak);
    CHECK_EQ(snapshots[count - 1].useful, 500);
    massif_free(massif);
}

TEST(the_table_stays_bounded) {
    for (unsigned most = 10; most < 60; most += 7) {
        struct massif_options options = plain;
        options.max_snapshots = most;
        options.detailed_freq = 1 + most % 5;
        struct massif *massif = start(&options);
        struct heap_block blocks[50] = {0};
        for (int i = 0; i < 20000; i++) {
            struct heap_block *block = &blocks[any(50)];
            if (block->capacity)
                release(block);
            allocate(block, 1 + any(3000), 1 + (uint32_t)any(40));
            if (i % 1000 == 0)
                massif_check(massif);
        }
        size_t count;
        massif_snapshots(massif, &count);
        CHECK(count >= most / 2 - 1 && count < most);
        massif_free(massif);
    }
}

// ---- files ----

static const char good[] =
    "desc: --time-unit=B\ncmd: ./prog a\\ b\ntime_unit: B\n"
    "#-----------\nsnapshot=0\n#-----------\ntime=0\nmem_heap_B=0\nmem_heap_extra_B=0\n"
    "mem_stacks_B=0\nheap_tree=empty\n"
    "#-----------\nsnapshot=1\n#-----------\ntime=2000\nmem_heap_B=1900\nmem_heap_extra_B=100\n"
    "mem_stacks_B=0\nheap_tree=peak\n"
    "n2: 1900 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n"
    " n1: 1500 0x401136: f(int)::{lambda()#1}::operator()() const (prog.cc:3)\n"
    "  n0: 1500 0x401150: main (prog.cc:9)\n"
    " n0: 400 in 2 places, all below massif's threshold (1.00%)\n";

static char *parse(const char *text, size_t size, struct massif_file *file) {
    FILE *in = fmemopen((void *)text, size, "r");
    char *problem = massif_file_read(in, file);
    fclose(in);
    return problem;
}

TEST(a_file_is_read) {
    struct massif_file file;
    char *problem = parse(good, sizeof good - 1, &file);
    CHECK(!problem);
    CHECK_EQ(file.snapshot_count, 2);
    CHECK_EQ(file.node_count, 4);
    CHECK(strcmp(file.command, "./prog a\\ b") == 0);
    CHECK(strstr(file.nodes[1].text, "{lambda()#1}::operator()"));
    CHECK_EQ(file.snapshots[1].kind, MASSIF_FILE_PEAK);
    CHECK_EQ(file.nodes[3].bytes, 400);
    massif_file_free(&file);
}

TEST(what_is_wrong_is_said) {
    struct massif_file file;
    char *problem = parse("desc: x\ncmd: y\ntime_unit: parsecs\n", 34, &file);
    CHECK(strcmp(problem, "line 3: expected a time unit of i, ms or B, got 'time_unit: parsecs'") ==
          0);
    free(problem);
    massif_file_free(&file);
    problem = parse(good, sizeof good - 60, &file);
    CHECK(strstr(problem, "the end of the file"));
    free(problem);
    massif_file_free(&file);
}

TEST(damaged_files_do_no_harm) {
    char bent[sizeof good];
    FILE *sunk = fopen("/dev/null", "w");
    int refused = 0;
    for (int i = 0; i < 20000; i++) {
        size_t size = any(3) ? sizeof good - 1 : 1 + any(sizeof good - 1);
        memcpy(bent, good, sizeof good);
        for (uint64_t times = 1 + any(3); times > 0; times--) {
            size_t at = any(size);
            bent[at] = any(2) ? (char)('0' + any(10)) : (char)any(256);
        }
        struct massif_file file;
        char *problem = parse(bent, size, &file);
        if (!problem)
            massif_print(sunk, &file,
                         &(struct massif_print_options){
                             .threshold = 1, .width = 40, .height = 10, .arguments = "x"});
        refused += problem != NULL;
        free(problem);
        massif_file_free(&file);
    }
    CHECK(refused > 5000 && refused < 20000);
    fclose(sunk);
}

TEST(deep_trees_are_refused) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs("desc: x\ncmd: y\ntime_unit: i\nsnapshot=0\ntime=0\nmem_heap_B=1\nmem_heap_extra_B=0\n"
          "mem_stacks_B=0\nheap_tree=detailed\n",
          out);
    for (int i = 0; i < 100000; i++)
        fputs("n1: 1 0x1: f\n", out);
    fclose(out);
    struct massif_file file;
    char *problem = parse(text, size, &file);
    CHECK(strstr(problem, "not too deep"));
    free(problem);
    massif_file_free(&file);
    free(text);
}

UNIT_MAIN()
