// The memory that the agent in the target (src/agent) and the supervisor share, for a target that
// samples itself by CPU timers of its threads.
//
// Words:
//   slot     room for one message: a sample, or data needed to understand samples
//   period   the requested CPU time between two samples. The kernel serves timers when its clock
//            ticks, so a sample may stand for several periods
//   frame    of an interpreter (wire_python.h)
//
// A message takes the first free slot, so that memory is used only as far as the supervisor is
// behind. A slot is FREE, then BUSY while one thread fills it, then FULL until the supervisor has
// read it. Nobody waits: without a free slot the message is lost, and counted. If a thread is
// killed while it fills a slot, only that slot is lost. Messages of a process are in the order of
// their times.
//
// The target can write this memory, so the supervisor trusts nothing in it.
#ifndef QUERN_WIRE_WIRE_SAMPLES_H
#define QUERN_WIRE_WIRE_SAMPLES_H

#include <stdatomic.h>
#include <stdint.h>

#include "wire/wire_python.h"

#define SAMPLES_VERSION   4
#define SAMPLES_VARIABLE  "QUERN_SAMPLER" // its value is the descriptor of the memory
#define SAMPLES_REGISTERS 17              // numbered as in unwind.h

enum { SAMPLES_SLOTS = 1024, SAMPLES_FIRST = 4096, SAMPLES_FRAMES = 512 };

struct samples_head {
    uint32_t version;
    uint32_t slot_bytes;
    uint32_t stack_bytes;          // of the stack, copied with each sample
    uint32_t frequency;            // periods in a second of CPU time
    uint32_t children;             // also sample programs that the target executes
    _Atomic uint32_t ended;        // the supervisor does not read any more
    _Atomic uint32_t off;          // do not sample now
    _Atomic uint32_t begun;        // programs that the agent was loaded into
    _Atomic uint64_t lost;         // periods and messages
    uint32_t interpreters;         // read the frames of interpreters
    _Atomic uint32_t python;       // version of the last one found, as in Py_Version; 0: none
    _Atomic uint32_t python_state; // enum python_state, of that one
};

enum samples_state { SAMPLES_FREE, SAMPLES_BUSY, SAMPLES_FULL };

enum samples_kind {
    SAMPLES_BEGUN = 1, // a program has begun; data is its name
    SAMPLES_FORKED,    // of the process `other`
    SAMPLES_MAPS,      // data are lines of /proc/PID/maps, of code only
    SAMPLES_SAMPLE,    // data is the stack, from the stack pointer on; then frames
    SAMPLES_CODE,      // data is a struct python_code
};

struct samples_slot {
    _Atomic uint32_t state;
    uint32_t kind;
    int32_t pid, tid;
    int32_t other;
    uint32_t periods;
    uint64_t time; // CLOCK_MONOTONIC, nanoseconds
    uint64_t registers[SAMPLES_REGISTERS];
    uint32_t size;        // of data, without frames
    uint32_t frame_count; // struct python_frame behind it, at the next multiple of 8
    uint8_t data[];
};

#endif
