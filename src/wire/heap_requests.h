// The requests of include/quern/heap.h, for the code that answers them. Programs include that
// header, so it uses nothing of src/; tests/unit compares the two.
#ifndef QUERN_WIRE_HEAP_REQUESTS_H
#define QUERN_WIRE_HEAP_REQUESTS_H

enum heap_request {
    HEAP_REQUEST_LISTENS = 0x51480000,   // 1: yes; 2: objects of pools shall come from malloc
    HEAP_REQUEST_MARK = 0x51480001,      // enum wire_heap_mark, name
    HEAP_REQUEST_ASK = 0x51480002,       // where to write WIRE_HEAP_ANSWERS words
    HEAP_REQUEST_ALLOCATED = 0x51480003, // address, size
    HEAP_REQUEST_FREED = 0x51480004,     // address
    HEAP_REQUEST_RESIZED = 0x51480005,   // old address, new address, new size
    HEAP_REQUEST_CHUNK = 0x51480006,     // address, size
};

// A program asks the preloaded recorder for its function by prctl(HEAP_REQUEST_PRCTL, struct
// heap_request_link *).
#define HEAP_REQUEST_PRCTL 0x51484150

struct heap_request_link {
    unsigned long version; // 1
    unsigned long (*request)(unsigned long otherwise, const unsigned long *words);
};

#endif
