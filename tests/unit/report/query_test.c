// Queries over counted rows: which statements qualify, what becomes of them, and the rows.
#include "unit.h"

#include <string.h>
#include <unistd.h>

#include "report/heap/query_rows.h"
#include "report/heap/query_weight.h"

static const char *weighted(const char *sql) {
    static char *text;
    free(text);
    text = query_weighted(sql, "w");
    return text ? text : "(not)";
}

TEST(sums_are_weighed) {
    CHECK_STR(weighted("SELECT count(*) FROM a"), "SELECT ifnull(sum(w),0) FROM a");
    CHECK_STR(weighted("select Sum( size+1 ), max(size) from a group by b"),
              "select Sum((size+1 )*w), max(size) from a group by b");
    CHECK_STR(weighted("SELECT count(x) FROM a"),
              "SELECT ifnull(sum(((x) IS NOT NULL)*w),0) FROM a");
    CHECK_STR(weighted("SELECT round(avg(x), 2) FROM a"),
              "SELECT round((total((x)*w)/nullif(sum(((x) IS NOT NULL)*w),0)), 2) FROM a");
    CHECK_STR(weighted("SELECT count(DISTINCT x), 'count(*)' FROM a -- sum(x)"),
              "SELECT count(DISTINCT x), 'count(*)' FROM a -- sum(x)");
    CHECK_STR(weighted("SELECT DISTINCT x FROM a"), "SELECT DISTINCT x FROM a");
}

TEST(what_is_not_simple_is_left_alone) {
    static const char *const statements[] = {
        "SELECT x FROM a",
        "SELECT max(x, y) FROM a",
        "SELECT (SELECT 1), count(*) FROM a",
        "WITH b AS (VALUES (1)) SELECT count(*) FROM a",
        "SELECT count(*) FROM a UNION VALUES (1)",
        "SELECT sum(x) OVER () FROM a",
        "SELECT sum(x) FILTER (WHERE y) FROM a",
        "SELECT sum(x ORDER BY y) FROM a",
        "SELECT count(*) FROM b LEFT JOIN a USING (x)",
        "SELECT group_concat(x), count(*) FROM a",
        "SELECT max(rowid) FROM a",
        "SELECT \"count\"(*) FROM a",
        "SELECT count(*",
    };
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        CHECK_STR(weighted(statements[i]), "(not)");
}

TEST(names_are_counted) {
    CHECK_EQ(query_mentions("SELECT a.x FROM A, \"a\" /* a */ WHERE 'a' <> b", "a"), 2);
    CHECK_EQ(query_mentions("SELECT aa FROM ba", "a"), 0);
}

// ---- rows ----

struct sums {
    uint64_t rows, blocks, bytes, nulls;
};

static struct sums read_rows(struct query_rows *rows) {
    struct query_cursor cursor;
    struct sums sums = {0};
    query_cursor_open(&cursor, rows, NULL, 0);
    while (query_cursor_next(&cursor)) {
        sums.rows++;
        sums.blocks += cursor.count;
        sums.bytes += cursor.count * cursor.values[QUERY_SIZE];
        sums.nulls += cursor.count * (cursor.values[QUERY_FREED_TIME] == QUERY_NULL);
    }
    query_cursor_close(&cursor);
    return sums;
}

static struct sums sums_of(unsigned columns, bool may_count, uint64_t sizes) {
    struct query_rows *rows = query_rows_new(columns, may_count);
    for (uint64_t i = 0; i < 1500000; i++)
        query_rows_add(rows, (uint64_t[QUERY_COLUMNS]){
                                 [QUERY_NUMBER] = i + 1,
                                 [QUERY_SIZE] = i % sizes,
                                 [QUERY_FREED_TIME] = i % 2 ? QUERY_NULL : 5,
                             });
    CHECK(query_rows_done(rows));
    struct sums sums = read_rows(rows), again = read_rows(rows);
    CHECK_EQ(sums.rows, query_rows_count(rows));
    CHECK_EQ(again.bytes, sums.bytes);
    query_rows_free(rows);
    return sums;
}

enum { TWO = 1 << QUERY_SIZE | 1 << QUERY_FREED_TIME };

TEST(equal_rows_are_counted_once) {
    struct sums counted = sums_of(TWO, true, 100), single = sums_of(TWO, false, 100);
    CHECK_EQ(counted.rows, 100);
    CHECK_EQ(single.rows, 1500000);
    CHECK_EQ(counted.blocks, single.blocks);
    CHECK_EQ(counted.bytes, single.bytes);
    CHECK_EQ(counted.nulls, 750000);
    // Numbers differ from block to block.
    CHECK_EQ(sums_of(TWO | 1 << QUERY_NUMBER, true, 100).rows, 1500000);
}

TEST(rows_that_differ_are_given_up) {
    struct sums sums = sums_of(TWO, true, 1499999);
    CHECK_EQ(sums.blocks, 1500000);
    CHECK_EQ(sums.bytes, 1499998ull * 1499999 / 2);
    CHECK_EQ(sums.nulls, 750000);
}

// How many rows are in the ranges, and how many of them the cursor gave beside those.
static uint64_t count_in(struct query_rows *rows, const struct query_range *ranges,
                         size_t count) {
    struct query_cursor cursor;
    uint64_t given = 0;
    query_cursor_open(&cursor, rows, ranges, count);
    while (query_cursor_next(&cursor)) {
        given++;
        for (size_t i = 0; i < count; i++) {
            uint64_t number = cursor.values[ranges[i].column] + 1;
            CHECK(number >= ranges[i].least && number <= ranges[i].most);
        }
    }
    query_cursor_close(&cursor);
    return given;
}

TEST(ranges_pass_over_rows) {
    struct query_rows *rows = query_rows_new(TWO | 1 << QUERY_TIME, false);
    enum { ROWS = 200000 };
    for (uint64_t i = 0; i < ROWS; i++)
        query_rows_add(rows, (uint64_t[QUERY_COLUMNS]){
                                 [QUERY_SIZE] = i * 7919 % 1000,
                                 [QUERY_TIME] = i * 100000,
                                 [QUERY_FREED_TIME] = i % 4 ? QUERY_NULL : UINT64_MAX - 2 - i,
                             });
    CHECK(query_rows_done(rows));
    struct query_range small = {QUERY_SIZE, 1, 10}, early = {QUERY_TIME, 1, 50000ull * 100000 + 1};
    struct query_range null = {QUERY_FREED_TIME, 0, 0}, freed = {QUERY_FREED_TIME, 1, UINT64_MAX};
    CHECK_EQ(count_in(rows, NULL, 0), ROWS);
    CHECK_EQ(count_in(rows, &small, 1), ROWS / 100);
    CHECK_EQ(count_in(rows, &early, 1), 50001);
    CHECK_EQ(count_in(rows, &null, 1), ROWS * 3 / 4);
    CHECK_EQ(count_in(rows, &freed, 1), ROWS / 4);
    CHECK_EQ(count_in(rows, (struct query_range[]){small, {QUERY_SIZE, 5, 2000}}, 2),
             ROWS * 6 / 1000);
    CHECK_EQ(count_in(rows, (struct query_range[]){null, freed}, 2), 0);
    query_rows_free(rows);
}

UNIT_MAIN()
