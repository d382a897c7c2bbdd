#include "base/remote.h"

enum state { BETWEEN, PAYLOAD, SUM_HIGH, SUM_LOW };
enum { ESCAPE = '}', INVERTED = 0x20 };

static const char digits[] = "0123456789abcdef";

int remote_value(char digit) {
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return REMOTE_NOTHING;
}

static enum remote_event finish(struct remote_reader *reader) {
    reader->state = BETWEEN;
    reader->payload[reader->size] = 0;
    return reader->is_cut || reader->sum != reader->sent_sum ? REMOTE_DAMAGED : REMOTE_PACKET;
}

static void add_byte(struct remote_reader *reader, uint8_t byte) {
    reader->sum += byte;
    if (byte == ESCAPE && !reader->is_escaped) {
        reader->is_escaped = true;
        return;
    }
    if (reader->size < REMOTE_MOST)
        reader->payload[reader->size++] = (char)(reader->is_escaped ? byte ^ INVERTED : byte);
    else
        reader->is_cut = true;
    reader->is_escaped = false;
}

enum remote_event remote_take(struct remote_reader *reader, uint8_t byte) {
    switch ((enum state)reader->state) {
    case BETWEEN:
        if (byte == REMOTE_INTERRUPT)
            return REMOTE_BREAK;
        if (byte == '$') {
            reader->state = PAYLOAD;
            reader->size = reader->sum = 0;
            reader->is_escaped = reader->is_cut = false;
        }
        return REMOTE_MORE;
    case PAYLOAD:
        if (byte == '#' && !reader->is_escaped)
            reader->state = SUM_HIGH;
        else
            add_byte(reader, byte);
        return REMOTE_MORE;
    case SUM_HIGH:
        reader->sent_sum = (uint8_t)(remote_value((char)byte) << 4);
        reader->state = SUM_LOW;
        return REMOTE_MORE;
    case SUM_LOW:
        reader->sent_sum |= (uint8_t)remote_value((char)byte);
        return finish(reader);
    }
    return REMOTE_MORE;
}

static bool needs_escape(char c) {
    return c == '$' || c == '#' || c == '*' || c == ESCAPE;
}

size_t remote_frame(char *out, const char *payload, size_t size) {
    char *at = out;
    uint8_t sum = 0;
    *at++ = '$';
    for (size_t i = 0; i < size; i++) {
        bool escaped = needs_escape(payload[i]);
        if (escaped)
            *at++ = ESCAPE;
        *at = (char)(escaped ? payload[i] ^ INVERTED : payload[i]);
        sum += (uint8_t)*at++ + (escaped ? ESCAPE : 0);
    }
    *at++ = '#';
    *at++ = digits[sum >> 4];
    *at++ = digits[sum & 15];
    return (size_t)(at - out);
}

char *remote_put_hex(char *out, const void *bytes, size_t size) {
    const uint8_t *from = bytes;
    for (size_t i = 0; i < size; i++) {
        *out++ = digits[from[i] >> 4];
        *out++ = digits[from[i] & 15];
    }
    return out;
}

size_t remote_get_hex(void *bytes, size_t most, const char *text) {
    uint8_t *to = bytes;
    size_t count = 0;
    for (; count < most; count++, text += 2) {
        int high = remote_value(text[0]);
        int low = high < 0 ? REMOTE_NOTHING : remote_value(text[1]);
        if (low < 0)
            break;
        to[count] = (uint8_t)(high << 4 | low);
    }
    return count;
}

bool remote_number(const char **text, uint64_t *value) {
    const char *start = *text;
    *value = 0;
    for (int digit; (digit = remote_value(**text)) >= 0; ++*text)
        *value = *value << 4 | (uint64_t)digit;
    return *text > start;
}
