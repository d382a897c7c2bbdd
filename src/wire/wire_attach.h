// How the recorder gets into a process that runs (attach/load.h, recorder/attached.c). Loader and
// recorder share a block of the process's memory, the *scratch*, which begins with a struct
// wire_attach.
//
// Who writes what: first the borrowed thread (`borrowed`, `error`), then the *helper*, a thread of
// the process that loads the recorder and stays in it until the end (the rest). Quern reads it with
// process_vm_readv and believes nothing in it.
#ifndef QUERN_WIRE_WIRE_ATTACH_H
#define QUERN_WIRE_WIRE_ATTACH_H

#include <stdint.h>

#define WIRE_ATTACH_ENTRY "quern_recorder_attach"
#define WIRE_ATTACH_SIZE  (256ul << 10) // of the scratch
#define WIRE_ATTACH_TEXT  240

enum wire_attach_borrowed {
    WIRE_ATTACH_NOTHING = 0,
    WIRE_ATTACH_CALLING = 1,  // the thread is in pthread_create
    WIRE_ATTACH_RETURNED = 2, // it goes back to what it did; `error` is valid
};

enum wire_attach_state {
    WIRE_ATTACH_LOADING = 0,
    WIRE_ATTACH_FAILED = 1,  // `problem` says why; the helper ends
    WIRE_ATTACH_WAITING = 2, // for the options, which come over the other end of `wire`
    WIRE_ATTACH_READY = 3,   // the patches can be made
    WIRE_ATTACH_ENDED = 4,
};

// Bytes to write where functions begin. `from` is where they are, `size` how many bytes of whole
// instructions they replace.
struct wire_attach_patch {
    uint64_t at;
    uint8_t original[8], jump[8]; // WIRE_ATTACH_JUMP of each
    uint32_t size, reserved;
};
#define WIRE_ATTACH_JUMP    5
#define WIRE_ATTACH_PATCHES 192

struct wire_attach {
    uint32_t borrowed;
    int32_t error; // of pthread_create
    uint64_t thread;
    uint32_t state;
    int32_t wire; // the supervisor's end, as a descriptor of the process
    // A word that is 1 while events are recorded.
    uint64_t active;
    uint64_t patches, patch_count; // struct wire_attach_patch
    char problem[WIRE_ATTACH_TEXT];
};

// What the helper is told over the wire: one byte. If it reads the end instead, Quern is gone.
#define WIRE_ATTACH_END 'E' // the patches are undone, and no thread is in the scratch

#endif
