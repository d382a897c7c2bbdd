// base/vector.h, base/map.h, base/hash.h and base/search.h.
#include "unit.h"

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/search.h"
#include "base/vector.h"

// ---- vector ----

TEST(vector_grows_and_keeps_what_is_in_it) {
    uint64_t *items = NULL;
    uint32_t count = 0;
    for (uint64_t i = 0; i < 5000; i++)
        *vector_push(items, count) = i * i;
    vector_check(items, count, sizeof *items);
    CHECK_EQ(count, 5000);
    for (uint64_t i = 0; i < 5000; i++)
        CHECK_EQ(items[i], i * i);
    free(items);
}

TEST(vector_room_is_a_power_of_two_that_holds_the_count) {
    CHECK_EQ(vector_room(0), 0);
    CHECK_EQ(vector_room(1), 4);
    CHECK_EQ(vector_room(4), 4);
    CHECK_EQ(vector_room(5), 8);
    CHECK_EQ(vector_room(8), 8);
    CHECK_EQ(vector_room(9), 16);
    CHECK_EQ(vector_room(((size_t)1 << 40) + 1), (size_t)1 << 41);
}

// The sanitizers' build sees an element beyond the memory.
TEST(vector_may_become_shorter_and_grow_again) {
    char *items = NULL;
    size_t count = 0;
    for (size_t longest = 1; longest < 200; longest++) {
        while (count < longest) {
            char next = (char)count;
            *vector_push(items, count) = next;
        }
        for (size_t i = 0; i < count; i++)
            CHECK_EQ(items[i], (char)i);
        vector_check(items, count, sizeof *items);
        count = longest * 7 % (longest + 1);
    }
    free(items);
}

TEST(vector_is_extended_by_several_elements) {
    char *bytes = NULL;
    size_t count = 0;
    for (size_t size = 0; size < 100; size++)
        memset(vector_extend(bytes, count, size), (char)size, size);
    vector_check(bytes, count, sizeof *bytes);
    CHECK_EQ(count, 99 * 100 / 2);
    for (size_t size = 0, at = 0; size < 100; size++)
        for (size_t i = 0; i < size; i++)
            CHECK_EQ(bytes[at++], (char)size);
    free(bytes);
}

// ---- hash ----

TEST(hash_of_a_text_is_fnv_1a) {
    CHECK_EQ(hash_text(HASH_TEXT_START, ""), 0xcbf29ce484222325);
    CHECK_EQ(hash_text(HASH_TEXT_START, "a"), 0xaf63dc4c8601ec8c);
    CHECK_EQ(hash_text(HASH_TEXT_START, "foobar"), 0x85944171f73967e8);
    CHECK_EQ(hash_bytes(HASH_TEXT_START, "foobar", 6), 0x85944171f73967e8);
    CHECK_EQ(hash_bytes(hash_text(HASH_TEXT_START, "foo"), "bar", 3), 0x85944171f73967e8);
}

// Keys that differ in few bits, upper or lower, do not crowd in few buckets.
TEST(hash_spreads_addresses) {
    for (unsigned shift = 0; shift <= 24; shift += 4) {
        unsigned buckets[256] = {0}, masked[256] = {0}, added[256] = {0};
        for (uint64_t i = 0; i < 4096; i++) {
            buckets[hash_bucket(i << shift, 8)]++;
            masked[hash_integer(i << shift) & 255]++;
            added[hash_add(hash_add(0, i << shift), 7) & 255]++;
        }
        for (unsigned i = 0; i < 256; i++) {
            CHECK(buckets[i] < 64);
            CHECK(masked[i] < 64);
            CHECK(added[i] < 64);
        }
    }
}

TEST(hash_depends_on_the_order_of_parts) {
    CHECK(hash_add(hash_add(0, 1), 2) != hash_add(hash_add(0, 2), 1));
}

TEST(hash_of_words_depends_on_every_byte_and_on_the_size) {
    char text[40] = {0};
    uint64_t zeros = hash_words(text, 33);
    CHECK(zeros != hash_words(text, 32));
    for (size_t i = 0; i < 33; i++) {
        text[i] = 1;
        CHECK(hash_words(text, 33) != zeros);
        CHECK_EQ(hash_words(text, 33), hash_words(memcpy((char[40]){0}, text, 40), 33));
        text[i] = 0;
    }
    text[33] = 1;
    CHECK_EQ(hash_words(text, 33), zeros);
}

// ---- map ----

TEST(map_numbers_integers_in_the_order_in_which_they_come) {
    struct map_integers map = {0};
    bool is_new;
    CHECK_EQ(map_integers_find(&map, 0), MAP_NONE);
    for (uint64_t i = 0; i < 3000; i++) {
        CHECK_EQ(map_integers_add(&map, i << 32, &is_new), i);
        CHECK(is_new);
        if (i < 200 || i % 100 == 0)
            map_check(&map.map);
    }
    for (uint64_t i = 0; i < 3000; i++) {
        CHECK_EQ(map_integers_add(&map, i << 32, &is_new), i);
        CHECK(!is_new);
        CHECK_EQ(map_integers_find(&map, i << 32 | 1), MAP_NONE);
    }
    CHECK_EQ(map.count, 3000);
    map_integers_clear(&map);
    map_check(&map.map);
    CHECK_EQ(map_integers_find(&map, 5ull << 32), MAP_NONE);
    CHECK_EQ(map_integers_add(&map, 5ull << 32, &is_new), 0);
    CHECK(is_new);
    map_integers_free(&map);
}

TEST(map_tells_texts_apart_by_all_their_bytes) {
    static const struct {
        const char *bytes;
        size_t size;
    } keys[] = {{"", 0}, {"a", 1}, {"ab", 2}, {"a\0b", 3}, {"a\0c", 3}, {"\0", 1}};
    struct map_texts map = {0};
    bool is_new;
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            CHECK_EQ(map_texts_add(&map, keys[i].bytes, keys[i].size, &is_new), i);
            CHECK_EQ(is_new, !round);
        }
    CHECK_EQ(map_texts_find(&map, "a\0d", 3), MAP_NONE);
    CHECK_STR(map.keys[2].bytes, "ab");
    map_check(&map.map);
    map_texts_free(&map);
}

// What the caller compares decides, however many entries have one hash.
TEST(map_walks_along_all_entries_of_a_hash) {
    struct map map = {0};
    for (uint32_t i = 0; i < 100; i++)
        CHECK_EQ(map_add(&map, i % 2 ? 7 : 8), i);
    map_check(&map);
    struct map_walk walk = map_walk(7);
    uint32_t seen = 0;
    for (uint32_t entry; (entry = map_next(&map, &walk)) != MAP_NONE; seen++)
        CHECK_EQ(entry % 2, 1);
    CHECK_EQ(seen, 50);
    CHECK(map_bytes(&map) >= 100 * sizeof *map.slots);
    map_free(&map);
}

// So many that some of them have the same 32 bits of hash.
TEST(map_tells_keys_of_one_hash_apart) {
    enum { MANY = 300000 };
    struct map_integers integers = {0};
    struct map_texts texts = {0};
    bool is_new;
    for (uint32_t i = 0; i < MANY; i++) {
        char text[16];
        int size = snprintf(text, sizeof text, "%u", i * 2654435761u);
        CHECK_EQ(map_integers_add(&integers, i * HASH_TEXT_START, &is_new), i);
        CHECK(is_new);
        CHECK_EQ(map_texts_add(&texts, text, (size_t)size, &is_new), i);
        CHECK(is_new);
    }
    map_check(&integers.map);
    map_check(&texts.map);
    map_integers_free(&integers);
    map_texts_free(&texts);
}

// ---- search ----

// All parts of an array in which some numbers come twice, compared with a search from the front.
TEST(search_finds_where_a_condition_begins_to_hold) {
    unsigned items[40];
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        items[i] = (unsigned)(i * 2 / 3 * 2);
    for (size_t from = 0; from < 40; from++)
        for (size_t to = from; to <= 40; to++)
            for (unsigned wanted = 0; wanted < 56; wanted++) {
                size_t first = from, asked = 0;
                while (first < to && items[first] < wanted)
                    first++;
                CHECK_EQ(search_first(at, from, to, (asked++, items[at] >= wanted)), first);
                CHECK(asked <= 6);
            }
    CHECK_EQ(search_first(at, 1, 0, items[at]), 1);
}

UNIT_MAIN_APART()
