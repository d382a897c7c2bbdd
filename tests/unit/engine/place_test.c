// Where memory goes that has no place of its own, usually and in one piece.
#include "engine/space/place.h"
#include "engine/layout.h"
#include "unit.h"

static const struct space_attributes plain = {.prot = PROT_READ | PROT_WRITE};

static uintptr_t take(struct space *space, enum place place, size_t size) {
    uintptr_t at = place_pick(space, place, size, SPACE_PAGE);
    CHECK(at != 0);
    CHECK_EQ(space_map(space, at, at + size, &plain), 0);
    return at;
}

static bool is_low(uintptr_t at) {
    return at >= LOW_START && at < LOW_END;
}

static bool is_high(uintptr_t at) {
    return at >= HIGH_START && at < HIGH_END;
}

// The tests run in this order: there is no way back from one piece.
TEST(code_lies_low_and_data_high) {
    struct space space;
    space_init(&space);
    CHECK_EQ(take(&space, PLACE_PROGRAM, 0x10000), 0x5c000000);
    CHECK_EQ(take(&space, PLACE_MODULE, 0x10000), LOW_END - 0x10000);
    CHECK_EQ(take(&space, PLACE_LOW, 0x1000), 0x40000000);
    CHECK_EQ(take(&space, PLACE_DATA, 0x1000), HIGH_END - 0x1000);
    CHECK_EQ(take(&space, PLACE_STACK, 0x1000), HIGH_END - 0x2000);
    CHECK_EQ(take(&space, PLACE_BREAK, place_break_room()), 0x550000000000);
    CHECK(place_break_room() >= 64ul << 30);
    CHECK(is_high(take(&space, PLACE_MODULE, LOW_END)));
    CHECK_EQ(place_pick(&space, PLACE_LOW, LOW_END, SPACE_PAGE), 0);
    space_destroy(&space);
}

TEST(data_lies_below_what_a_tool_keeps) {
    struct space space;
    space_init(&space);
    place_below(HIGH_SHADOWED_END);
    CHECK_EQ(take(&space, PLACE_DATA, 0x1000), HIGH_SHADOWED_END - 0x1000);
    CHECK_EQ(take(&space, PLACE_BREAK, place_break_room()), HIGH_START);
    // What is too large for the high area goes between the two.
    uintptr_t at = take(&space, PLACE_DATA, 20ul << 40);
    CHECK(at >= JUMP_TABLE_END && at < NON_TABLE_END);
    space_destroy(&space);
}

TEST(in_one_piece_everything_goes_where_it_first_fits) {
    struct space space;
    space_init(&space);
    place_in_one_piece();
    CHECK(is_in_one_piece());
    CHECK_EQ(take(&space, PLACE_PROGRAM, 0x10000), 0x108000);
    CHECK_EQ(take(&space, PLACE_MODULE, 0x35000), 0x4000000);
    CHECK_EQ(take(&space, PLACE_BREAK, place_break_room()), 0x4035000);
    uintptr_t data = take(&space, PLACE_DATA, 0x2000);
    CHECK_EQ(data, 0x4835000);
    CHECK_EQ(take(&space, PLACE_MODULE, 0x10000), 0x4837000);
    CHECK_EQ(take(&space, PLACE_DATA, 0x1000), 0x4847000);
    CHECK_EQ(space_unmap(&space, data, data + 0x2000), 0);
    CHECK_EQ(take(&space, PLACE_DATA, 0x3000), 0x4848000);
    CHECK_EQ(take(&space, PLACE_LOW, 0x1000), data);
    CHECK_EQ((take(&space, PLACE_STACK, 0x10000) + 0x10000) & 0xffffffff,
             0xff001000 + PLACE_PATH_ROOM);
    space_destroy(&space);
}

TEST(in_one_piece_much_data_leaves_room_for_code) {
    struct space space;
    space_init(&space);
    size_t size = 64ul << 20;
    uintptr_t last = 0, at;
    while (is_low(at = take(&space, PLACE_DATA, size)))
        last = at;
    CHECK(last > 0x50000000);
    CHECK(is_high(at));
    CHECK_EQ(take(&space, PLACE_DATA, size), at + size);
    CHECK(is_low(take(&space, PLACE_MODULE, size)));
    CHECK(is_low(take(&space, PLACE_LOW, size)));
    while (is_low(at = take(&space, PLACE_MODULE, size)))
        ;
    CHECK(is_high(at));
    space_destroy(&space);
}

UNIT_MAIN()
