// Frames of CPython as the target tells them: code, and how far it has got. Code has a number,
// which is described before it is first used.
//
// The target can write this, so the supervisor trusts nothing in it.
#ifndef QUERN_WIRE_WIRE_PYTHON_H
#define QUERN_WIRE_WIRE_PYTHON_H

#include <stdint.h>

// What is known of the frames of an interpreter of Python.
enum python_state {
    PYTHON_OTHER,         // another version than the supported ones
    PYTHON_FREE_THREADED, // built without the global lock
    PYTHON_HIDDEN,        // it does not export what finds its frames
    PYTHON_UNSEEN,        // supported; no stack has met a frame so far
    PYTHON_SEEN,
};

struct python_frame {
    uint64_t code;
    int32_t offset;    // of the instruction, in bytes; negative: before the first
    uint32_t is_entry; // the interpreter was entered with this frame
};

struct python_code {
    uint64_t code;
    int32_t first_line;
    uint32_t name_size, file_size, table_size;
    uint8_t bytes[]; // the name and the file in UTF-8; the table of lines
};

// Room for a description of any code.
enum { PYTHON_CODE_BYTES = 32768 };

#endif
