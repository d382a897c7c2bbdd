// Packets of gdb's remote protocol: `$` payload `#` checksum. In a payload, `}` marks a byte that
// is sent with bit 5 inverted. Target and command line use these functions; they allocate nothing.
#ifndef QUERN_BASE_REMOTE_H
#define QUERN_BASE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REMOTE_INTERRUPT = 3, // a byte between packets: stop the target
    REMOTE_MOST = 16384,  // bytes of a payload, as qSupported says
    REMOTE_OVERHEAD = 4,  // of a frame
    REMOTE_NOTHING = -1,  // of remote_value: not a digit
};

// A reader of packets, fed byte by byte. Acknowledgements are skipped.
struct remote_reader {
    char payload[REMOTE_MOST + 1]; // terminated
    size_t size;
    uint8_t sum, sent_sum;
    uint8_t state; // 0: between packets
    bool is_escaped, is_cut;
};

enum remote_event { REMOTE_MORE, REMOTE_PACKET, REMOTE_BREAK, REMOTE_DAMAGED };
enum remote_event remote_take(struct remote_reader *, uint8_t byte);

// Writes a frame around the payload; the number of bytes. `out` has room for twice the payload and
// REMOTE_OVERHEAD.
size_t remote_frame(char *out, const char *payload, size_t size);

int remote_value(char digit); // of a hexadecimal digit
// Writes two digits for each byte, without a terminator; returns their end.
char *remote_put_hex(char *out, const void *bytes, size_t size);
// Reads up to `most` bytes; how many there were.
size_t remote_get_hex(void *bytes, size_t most, const char *text);
// A number in hexadecimal; *text moves to its end. False: there is none.
bool remote_number(const char **text, uint64_t *value);

#endif
