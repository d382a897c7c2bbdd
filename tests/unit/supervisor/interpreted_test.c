/* Frames of Python: tables of lines, descriptions of code, marks. */
#include "unit.h"

#include "tools/shared/supervisor/interpreted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A description; its size. */
static size_t describe(uint8_t *to, uint64_t number, const char *name, const char *file,
                       const uint8_t *table, size_t table_size) {
    struct python_code *code = (struct python_code *)to;
    *code = (struct python_code){.code = number,
                                 .first_line = 10,
                                 .name_size = (uint32_t)strlen(name),
                                 .file_size = (uint32_t)strlen(file),
                                 .table_size = (uint32_t)table_size};
    uint8_t *at = code->bytes;
    memcpy(at, name, strlen(name));
    memcpy(at += strlen(name), file, strlen(file));
    memcpy(at += strlen(file), table, table_size);
    return (size_t)(at - to) + table_size;
}

/* Entries of all kinds, by the description of the format in CPython's Objects/locations.md. */
static const uint8_t table[] = {
    0x80 | 0 << 3 | 0,  0x00,                        /* short, 1 unit: the same line */
    0x80 | 11 << 3 | 1, 0x01, 0x02,                  /* one line further, 2 units */
    0x80 | 15 << 3 | 0,                              /* none */
    0x80 | 13 << 3 | 0, 0x03,                        /* -1 */
    0x80 | 14 << 3 | 7, 0x42, 0x02, 0x00, 0x01, 0x05 /* +65, 8 units: a number of two bytes */
};

TEST(lines_of_a_table) {
    static const struct {
        int32_t offset, line;
    } expected[] = {{-2, 10}, {0, 10}, {1, 10}, {2, 11},  {5, 11},
                    {6, 11},  {8, 10}, {9, 10}, {10, 75}, {25, 75}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        CHECK_EQ(interpreted_line(table, sizeof table, 10, expected[i].offset), expected[i].line);
    CHECK_EQ(interpreted_line(NULL, 0, 10, 4), 10);
}

static const char *text_of(const struct interpreted *interpreted, uint64_t mark) {
    static char text[256];
    int32_t line;
    const struct interpreted_code *code = interpreted_find(interpreted, mark, &line);
    snprintf(text, sizeof text, "%s (%s:%d)", code ? code->name : "?", code ? code->file : "?",
             code ? line : 0);
    return text;
}

TEST(marks_name_function_file_and_line) {
    struct interpreted interpreted = {0};
    uint8_t bytes[256];
    interpreted_add(&interpreted, (struct python_code *)bytes,
                    describe(bytes, 7, "A.f", "/home/x/a.py", table, sizeof table));
    interpreted_add(&interpreted, (struct python_code *)bytes,
                    describe(bytes, 7, "later", "b.py", table, sizeof table));
    interpreted_add(&interpreted, (struct python_code *)bytes,
                    describe(bytes, 8, "g", "c.py", table, 0));
    struct python_frame frame = {.code = 7, .offset = 2, .is_entry = 5};
    uint64_t mark = interpreted_mark(&interpreted, &frame);
    CHECK(interpreted_is_mark(mark) && (mark & 1));
    CHECK_STR(text_of(&interpreted, mark), "A.f (/home/x/a.py:11)");
    frame.is_entry = 0;
    frame.offset = 4;
    CHECK_EQ(interpreted_mark(&interpreted, &frame), mark - 1);
    frame.offset = 0;
    CHECK_STR(text_of(&interpreted, interpreted_mark(&interpreted, &frame)),
              "A.f (/home/x/a.py:10)");
    frame.code = 8;
    CHECK_STR(text_of(&interpreted, interpreted_mark(&interpreted, &frame)), "g (c.py:10)");
    frame.code = 9;
    CHECK_EQ(interpreted_mark(&interpreted, &frame), 0);
    interpreted_free(&interpreted);
}

TEST(damaged_descriptions_do_no_harm) {
    unsigned seed = 5;
    struct interpreted interpreted = {0};
    for (int round = 0; round < 20000; round++) {
        _Alignas(8) uint8_t bytes[256];
        size_t size = describe(bytes, (uint64_t)rand_r(&seed) % 100, "function", "/a/b.py", table,
                               sizeof table);
        for (int i = rand_r(&seed) % 6; i > 0; i--)
            bytes[(size_t)rand_r(&seed) % size] = (uint8_t)rand_r(&seed);
        size_t part = (size_t)rand_r(&seed) % (size + 1);
        uint8_t *copy = malloc(part ? part : 1); /* of its exact size, for the sanitizers */
        memcpy(copy, bytes, part);
        interpreted_add(&interpreted, (struct python_code *)copy, part);
        free(copy);
        struct python_frame frame = {.code = (uint64_t)rand_r(&seed) % 100,
                                     .offset = rand_r(&seed) % 100 - 10};
        uint64_t mark = interpreted_mark(&interpreted, &frame);
        CHECK(!mark || interpreted_is_mark(mark));
        CHECK(text_of(&interpreted, mark) != NULL);
    }
    interpreted_free(&interpreted);
}

/* Calls of the interpreter are the addresses below 100. */
static bool is_call(void *context, uint64_t address) {
    return address < 100;
}

TEST(marks_take_the_place_of_calls) {
    const uint64_t mark = INTERPRETED_START;
    static const struct {
        size_t count;
        bool is_cut;
        uint64_t stack[8], put[8]; /* a mark is 1000 and more, an odd one an entry */
    } expected[] = {
        /* One call has run two frames, the outer call one. */
        {7, false, {500, 7, 501, 8, 1000, 1003, 1005}, {500, 1001, 1003, 501, 1005}},
        /* The innermost call has not begun a frame yet. */
        {5, false, {7, 500, 8, 501, 1003}, {7, 500, 1003, 501}},
        /* Fewer calls than frames that were entered: they do not belong together. */
        {4, false, {7, 500, 1001, 1003}, {7, 500}},
        /* The outer end is missing: frames are told from the innermost one on. */
        {5, true, {7, 500, 1000, 1003, 1005}, {1001, 1003, 500}},
        {2, false, {7, 500}, {7, 500}},
        {1, false, {1001}, {0}},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        uint64_t stack[8], put[8];
        for (size_t j = 0; j < expected[i].count; j++)
            stack[j] = expected[i].stack[j] + (expected[i].stack[j] >= 1000 ? mark - 1000 : 0);
        size_t count =
            interpreted_put(stack, expected[i].count, expected[i].is_cut, is_call, NULL, put);
        size_t wanted = 0;
        while (wanted < 8 && expected[i].put[wanted])
            wanted++;
        CHECK_EQ(count, wanted);
        for (size_t j = 0; j < count; j++)
            CHECK_EQ(put[j], expected[i].put[j] + (expected[i].put[j] >= 1000 ? mark - 1000 : 0));
    }
}

UNIT_MAIN()
