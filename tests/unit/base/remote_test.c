// Packets of gdb's remote protocol: framing, escapes, damage, numbers.
#include <string.h>

#include "base/remote.h"
#include "unit.h"

static struct remote_reader reader;

// Feeds bytes; the last event that was not REMOTE_MORE.
static enum remote_event feed(const char *bytes, size_t size) {
    enum remote_event last = REMOTE_MORE;
    for (size_t i = 0; i < size; i++) {
        enum remote_event event = remote_take(&reader, (uint8_t)bytes[i]);
        if (event != REMOTE_MORE)
            last = event;
    }
    return last;
}

TEST(what_is_framed_is_read_back) {
    const char payload[] = "a$b#c}d*e\x03\0f";
    char frame[2 * sizeof payload + REMOTE_OVERHEAD];
    size_t size = remote_frame(frame, payload, sizeof payload - 1);
    CHECK(size > sizeof payload);
    CHECK_EQ(feed(frame, size), REMOTE_PACKET);
    CHECK_EQ(reader.size, sizeof payload - 1);
    CHECK(memcmp(reader.payload, payload, sizeof payload - 1) == 0);
}

TEST(known_frame) {
    char frame[16];
    size_t size = remote_frame(frame, "OK", 2);
    CHECK_EQ(size, 6);
    CHECK(memcmp(frame, "$OK#9a", 6) == 0);
}

TEST(damage_and_interrupts) {
    CHECK_EQ(feed("$OK#9b", 6), REMOTE_DAMAGED);
    CHECK_EQ(feed("+-+", 3), REMOTE_MORE);
    CHECK_EQ(feed("\x03", 1), REMOTE_BREAK);
    CHECK_EQ(feed("$\x03#03", 5), REMOTE_PACKET); // within a packet it is a byte like others
    static char large[REMOTE_MOST + 100];
    memset(large, 'a', sizeof large);
    CHECK_EQ(feed("$", 1), REMOTE_MORE);
    CHECK_EQ(feed(large, sizeof large), REMOTE_MORE);
    CHECK_EQ(feed("#00", 3), REMOTE_DAMAGED);
    CHECK_EQ(feed("$OK#9a", 6), REMOTE_PACKET);
}

TEST(numbers_and_bytes) {
    const char *text = "1aF,";
    uint64_t value;
    uint8_t bytes[4];
    char digits[8];
    CHECK(remote_number(&text, &value));
    CHECK_EQ(value, 0x1af);
    CHECK(*text == ',');
    CHECK(!remote_number(&text, &value));
    CHECK_EQ(remote_get_hex(bytes, 4, "00ff7x"), 2);
    CHECK_EQ(bytes[1], 0xff);
    CHECK(remote_put_hex(digits, bytes, 2) == digits + 4);
    CHECK(memcmp(digits, "00ff", 4) == 0);
}

UNIT_MAIN()
