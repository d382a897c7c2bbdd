// base/maps.h.
#include "unit.h"

#include <string.h>
#include <sys/mman.h>

#include "base/maps.h"

TEST(maps_parses_a_line_of_a_file) {
    struct maps_mapping m;
    static const char line[] = "7f12a0000000-7f12a0021000 r-xs 0001f000 08:02 135522              "
                               "       /usr/lib/a b.so (deleted)";
    CHECK(maps_parse(line, &m));
    CHECK_STR(m.line, line);
    CHECK_EQ(m.start, 0x7f12a0000000);
    CHECK_EQ(m.end, 0x7f12a0021000);
    CHECK_EQ(m.offset, 0x1f000);
    CHECK_EQ(m.inode, 135522);
    CHECK(m.readable && !m.writable && m.executable && m.shared);
    CHECK_STR(m.path, "/usr/lib/a b.so (deleted)");
}

TEST(maps_parses_lines_without_a_file) {
    struct maps_mapping m;
    CHECK(maps_parse("00400000-00401000 -w-p 00000000 00:00 0 ", &m));
    CHECK(!m.readable && m.writable && !m.executable && !m.shared);
    CHECK_STR(m.path, "");
    CHECK(
        maps_parse("7ffc0000-7ffd0000 rw-p 00000000 00:00 0                          [stack]", &m));
    CHECK_STR(m.path, "[stack]");
    CHECK_EQ(m.inode, 0);
    CHECK(maps_parse("ffffffffff600000-ffffffffff601000 --xp 0 00:00 0", &m));
    CHECK_EQ(m.start, 0xffffffffff600000);
    CHECK_STR(m.path, "");
}

TEST(maps_refuses_what_is_no_line) {
    static const char *const lines[] = {"",
                                        "-",
                                        "1000",
                                        "1000-",
                                        "1000-2000",
                                        "1000-2000 r",
                                        "2000-1000 r--p 0 00:00 0",
                                        "xyz-2000 r--p 0 00:00 0",
                                        "1000 2000 r--p 0 00:00 0"};
    struct maps_mapping m;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        CHECK(!maps_parse(lines[i], &m));
}

// The program's own mappings: enough of them that the buffer is filled several times.
TEST(maps_reads_every_line_of_this_process) {
    enum { PAGES = 600, PAGE = 4096 };
    char *area = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < PAGES; i += 2)
        mprotect(area + i * PAGE, PAGE, PROT_READ);
    struct maps_reader reader;
    struct maps_mapping m;
    size_t own = 0, stacks = 0;
    uint64_t last = 0;
    CHECK(maps_reader_open(&reader, "/proc/self/maps"));
    while (maps_reader_next(&reader, &m)) {
        CHECK(m.start >= last);
        last = m.end;
        own += m.readable && m.start >= (uint64_t)area && m.end <= (uint64_t)area + PAGES * PAGE;
        if (strcmp(m.path, "[stack]") == 0)
            stacks += (uint64_t)&own >= m.start && (uint64_t)&own < m.end;
    }
    maps_reader_close(&reader);
    CHECK_EQ(own, PAGES / 2);
    CHECK_EQ(stacks, 1);
}

// A file that is read in pieces that do not end with a line, as the kernel's own do.
static void open_text(struct maps_reader *reader, const char *text, size_t size) {
    char path[] = "/tmp/maps_test_XXXXXX";
    int fd = mkstemp(path);
    CHECK_EQ(write(fd, text, size), size);
    close(fd);
    CHECK(maps_reader_open(reader, path));
    unlink(path);
}

TEST(maps_joins_lines_that_are_read_in_two_pieces) {
    enum { LINES = 1000 };
    static char text[LINES * 64];
    size_t size = 0;
    for (unsigned i = 1; i <= LINES; i++)
        size += (size_t)sprintf(text + size, "%x-%x r--p 0 00:00 0 /file%u\n", i, i + 1, i);
    struct maps_reader reader;
    struct maps_mapping m;
    open_text(&reader, text, size);
    for (unsigned i = 1; i <= LINES; i++) {
        char path[32];
        sprintf(path, "/file%u", i);
        CHECK(maps_reader_next(&reader, &m));
        CHECK_EQ(m.start, i);
        CHECK_STR(m.path, path);
    }
    CHECK(!maps_reader_next(&reader, &m));
    maps_reader_close(&reader);
}

// The rest of the line looks like one, and is none.
TEST(maps_skips_a_line_that_is_too_long) {
    static char text[3 * MAPS_LINE_MAX];
    size_t size = (size_t)sprintf(text, "1000-2000 r--p 0 00:00 0 /first\n");
    memset(text + size, 'x', MAPS_LINE_MAX);
    size += MAPS_LINE_MAX;
    size += (size_t)sprintf(text + size, "3000-4000 r--p 0 00:00 0 /rest\n"
                                         "5000-6000 r--p 0 00:00 0 /last\nno line\n");
    struct maps_reader reader;
    struct maps_mapping m;
    open_text(&reader, text, size);
    CHECK(maps_reader_next(&reader, &m));
    CHECK_STR(m.path, "/first");
    CHECK(maps_reader_next(&reader, &m));
    CHECK_STR(m.path, "/last");
    CHECK(!maps_reader_next(&reader, &m));
    maps_reader_close(&reader);
}

TEST(maps_of_no_file_has_no_lines) {
    struct maps_reader reader;
    struct maps_mapping m;
    CHECK(!maps_reader_open(&reader, "/proc/self/nothing"));
    CHECK(!maps_reader_next(&reader, &m));
    maps_reader_close(&reader);
}

UNIT_MAIN()
