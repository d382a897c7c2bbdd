// Bounds-checked reading of DWARF data. Internal to src/unwind.
//
// A cursor never passes its end. A read beyond it returns 0 and marks the cursor as failed. The
// cursor stays failed, so a caller may read several fields and test once.
#ifndef QUERN_UNWIND_CURSOR_H
#define QUERN_UNWIND_CURSOR_H

#include <string.h>

#include "unwind/image.h"

struct cursor {
    const struct unwind_view *view;
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
};

// How a pointer is stored (DW_EH_PE_*).
enum {
    ENCODE_ABSOLUTE = 0x00,
    ENCODE_ULEB = 0x01,
    ENCODE_U16 = 0x02,
    ENCODE_U32 = 0x03,
    ENCODE_U64 = 0x04,
    ENCODE_SLEB = 0x09,
    ENCODE_S16 = 0x0a,
    ENCODE_S32 = 0x0b,
    ENCODE_S64 = 0x0c,
    ENCODE_FORMAT = 0x0f,
    ENCODE_PC_RELATIVE = 0x10,
    ENCODE_DATA_RELATIVE = 0x30,
    ENCODE_BASE = 0x70,
    ENCODE_INDIRECT = 0x80,
    ENCODE_OMIT = 0xff,
};

static inline struct cursor cursor_at(const struct unwind_view *view, uint64_t address,
                                      uint64_t size) {
    uint64_t offset = address - view->address;
    if (address < view->address || offset > view->size || size > view->size - offset)
        return (struct cursor){view, view->bytes, view->bytes, true};
    const uint8_t *at = view->bytes + offset;
    return (struct cursor){view, at, at + size, false};
}

static inline size_t cursor_left(const struct cursor *cursor) {
    return (size_t)(cursor->end - cursor->at);
}

static inline uint64_t cursor_address(const struct cursor *cursor) {
    return cursor->view->address + (uint64_t)(cursor->at - cursor->view->bytes);
}

static inline bool cursor_skip(struct cursor *cursor, uint64_t size) {
    if (size > cursor_left(cursor)) {
        cursor->at = cursor->end;
        cursor->failed = true;
        return false;
    }
    cursor->at += size;
    return true;
}

#define CURSOR_READER(name, type)                                                                  \
    static inline type name(struct cursor *cursor) {                                               \
        type value;                                                                                \
        if (cursor_left(cursor) < sizeof value) {                                                  \
            cursor->at = cursor->end;                                                              \
            cursor->failed = true;                                                                 \
            return 0;                                                                              \
        }                                                                                          \
        memcpy(&value, cursor->at, sizeof value);                                                  \
        cursor->at += sizeof value;                                                                \
        return value;                                                                              \
    }
CURSOR_READER(cursor_u8, uint8_t)
CURSOR_READER(cursor_u16, uint16_t)
CURSOR_READER(cursor_u32, uint32_t)
CURSOR_READER(cursor_u64, uint64_t)
#undef CURSOR_READER

static inline uint64_t cursor_uleb(struct cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
}

static inline int64_t cursor_sleb(struct cursor *cursor) {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
        uint8_t byte = cursor_u8(cursor);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80)) {
            if (shift < 64 && (byte & 0x40))
                value |= ~UINT64_C(0) << shift;
            return (int64_t)value;
        }
    }
}

// The number alone, without its base.
static inline uint64_t cursor_number(struct cursor *cursor, uint8_t encoding) {
    switch (encoding & ENCODE_FORMAT) {
    case ENCODE_ABSOLUTE:
    case ENCODE_U64:
    case ENCODE_S64:
        return cursor_u64(cursor);
    case ENCODE_U32:
        return cursor_u32(cursor);
    case ENCODE_S32:
        return (uint64_t)(int64_t)(int32_t)cursor_u32(cursor);
    case ENCODE_U16:
        return cursor_u16(cursor);
    case ENCODE_S16:
        return (uint64_t)(int64_t)(int16_t)cursor_u16(cursor);
    case ENCODE_ULEB:
        return cursor_uleb(cursor);
    case ENCODE_SLEB:
        return (uint64_t)cursor_sleb(cursor);
    default:
        cursor->failed = true;
        return 0;
    }
}

// A pointer; data is the base of data-relative ones. Indirect pointers, and those relative to the
// text or function start, do not occur in this data and count as failures.
static inline uint64_t cursor_pointer(struct cursor *cursor, uint8_t encoding, uint64_t data) {
    uint64_t place = cursor_address(cursor);
    uint64_t value = cursor_number(cursor, encoding);
    if (encoding & ENCODE_INDIRECT)
        cursor->failed = true;
    switch (encoding & ENCODE_BASE) {
    case 0:
        return value;
    case ENCODE_PC_RELATIVE:
        return place + value;
    case ENCODE_DATA_RELATIVE:
        return data + value;
    default:
        cursor->failed = true;
        return 0;
    }
}

#endif
