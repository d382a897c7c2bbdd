// The protocol between the processes of a target and the supervisor.
//
// Two channels exist. The *wire* is one end of a SOCK_SEQPACKET socket pair that all processes of
// the tree share: one message is one packet, so packets of many processes and threads never mix.
// The *configuration* is a sealed memory file with the effective options, written once by the
// supervisor before the target starts. In front of them is the *board*, where the supervisor shows
// how far it is; the target only reads it.
//
// Both sides are built from this header. Whoever changes a structure, a type's number or a rule
// raises WIRE_VERSION and adds a line to the history. The supervisor refuses other versions and
// says that quern and quern-engine must come from one build.
//
// History
//   1  first version
//   2  WIRE_HEAP and wire_heap.h: recorded processes
//   3  WIRE_FILE, at first for counts only
//   4  WIRE_PRINT
//   5  findings.h: WIRE_LEDGER to WIRE_FINDINGS_END
//   6  wire_heap.h: regions, samples, names of threads
//   7  WIRE_HEAP_ENDING; wire_heap.h: what the recorder itself has mapped, whose heap it is
//   8  wire_heap.h: instructions and stacks, marks, questions, chunks
//   9  WIRE_OPTION
//  10  findings.h: the heap by place, behind the ledger
//  11  WIRE_ENDING
//  12  findings.h: findings and losses as profile/findings has them
//  13  the board; WIRE_REAPED
//  14  wire_heap.h: forked children; findings.h: frees that freed nothing
//  15  WIRE_EXEC_AWAY says why; wire_start.h: limits
//  16  WIRE_DEBUGGER, WIRE_WAITS_FOR_DEBUGGER, WIRE_MONITOR;
//      wire_heap.h: ended_at instead of has_ended
//  17  WIRE_EXEC
//  18  wire_heap.h: anonymous memory in samples
//  19  WIRE_PRINT has the thread's name
#ifndef QUERN_WIRE_WIRE_H
#define QUERN_WIRE_WIRE_H

#include <stdint.h>

#define WIRE_MAGIC       0x4e525551u // "QURN" in memory
#define WIRE_VERSION     19
#define WIRE_THREAD_NAME 16
#define WIRE_MESSAGE_MAX 65536 // header and payload together

enum wire_type {
    WIRE_HELLO = 1,         // struct wire_hello: the process runs translated from now on
    WIRE_FORKED = 2,        // struct wire_forked: sent by the child, before anything else
    WIRE_EXEC_AWAY = 3,     // struct wire_exec_away: the process becomes a program not followed
    WIRE_EXITING = 4,       // struct wire_exiting: the process ends by exit
    WIRE_FATAL_SIGNAL = 5,  // struct wire_fatal_signal: a signal is about to end the process
    WIRE_MODULE_MAP = 6,    // struct wire_module_map: part of a file was mapped
    WIRE_MODULE_UNMAP = 7,  // struct wire_module_unmap: a range is no longer mapped
    WIRE_NOTICE = 8,        // struct wire_text: for the user, shown after ==PID==
    WIRE_DEBUG = 9,         // struct wire_text: debugging output, shown after --PID--
    WIRE_HEAP = 10,         // struct wire_heap, with the descriptor of the area (wire_heap.h)
    WIRE_FILE = 11,         // no payload; a memory file of the tool comes along
    WIRE_PRINT = 12,        // struct wire_print: what the program prints, shown after **PID**
    WIRE_LEDGER = 13,       // no payload; the ledger of findings.h comes along
    WIRE_FINDING = 14,      // struct wire_finding
    WIRE_LEAKS = 15,        // struct wire_leaks
    WIRE_LOSSES = 16,       // several struct wire_loss
    WIRE_FINDINGS_END = 17, // struct wire_findings_end
    // struct wire_text: the tool is to report on that file now (level 0) or to start from zero (1);
    // the text says why
    WIRE_DUMP = 18,
    // no payload; a recorded process ends, once `answered` is set in its area
    WIRE_HEAP_ENDING = 19,
    // struct wire_text: an option that the program itself changes, as it is typed
    WIRE_OPTION = 20,
    // no payload; the process is to end, and what its tool has to say before may take long
    WIRE_ENDING = 21,
    // struct wire_reaped: the sender has waited for another process, which has ended
    WIRE_REAPED = 22,
    // no payload; a socket comes along, over which the process speaks gdb's remote protocol. It was
    // asked to (WIRE_DEBUG_SIGNAL), or it waits for gdb
    WIRE_DEBUGGER = 23,
    WIRE_WAITS_FOR_DEBUGGER = 24,
    // struct wire_text: a command of gdb's user for the supervisor (level 0), or text for that user
    // (3). From here on the process's lines of the log go to gdb (1), or to the log again (2)
    WIRE_MONITOR = 25,
    // no payload; the process is about to exec, whatever. Until it says hello, no WIRE_DEBUG_SIGNAL
    WIRE_EXEC = 26,
    // no payload; the recorder in a process that runs already is ready (wire_attach.h)
    WIRE_ATTACHED = 27,
};

// The supervisor sends this signal with this code to a process that gdb wants something of. Not
// before the process has said hello, nor between WIRE_EXEC and the next hello: then the signal
// would end it.
#define WIRE_DEBUG_SIGNAL 5 // SIGTRAP
#define WIRE_DEBUG_CODE   (-0x5158)

struct wire_header {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t size; // of the payload that follows
    int32_t pid;   // of the sender, in its own pid namespace
    int32_t tid;
    uint32_t reserved; // 0
};

#define WIRE_PAYLOAD_MAX (WIRE_MESSAGE_MAX - sizeof(struct wire_header))

// A string that ends a payload takes up the rest of it and is NUL-terminated.

struct wire_hello {
    int32_t pid;
    int32_t ppid;
    // Of the program; then its arguments from argv[0] on, each terminated. Without arguments: the
    // process is still the program that it was, an announced exec has failed.
    char path[];
};

struct wire_forked {
    int32_t parent;
    int32_t child;
};

enum wire_away {
    WIRE_AWAY_NOT_ASKED,  // --trace-children=no
    WIRE_AWAY_SKIPPED,    // --trace-children-skip
    WIRE_AWAY_IMPOSSIBLE, // the engine cannot run it
};

struct wire_exec_away {
    uint32_t reason; // enum wire_away
    char path[];
};

struct wire_exiting {
    int32_t status; // as given to exit_group
};

struct wire_reaped {
    int32_t pid; // in the pid namespace of the sender
};

struct wire_fatal_signal {
    int32_t signal;
    int32_t code; // si_code
    uint64_t address;
    int32_t tid;
    uint32_t pc_count; // exactly this many pcs follow
    uint64_t pcs[];    // innermost first; those after the first are return addresses
};

struct wire_module_map {
    uint64_t start;
    uint64_t end;
    uint64_t offset; // in the file
    uint32_t prot;   // PROT_*
    uint32_t reserved;
    char path[];
};

struct wire_module_unmap {
    uint64_t start;
    uint64_t end;
};

struct wire_text {
    // shown when the verbosity is at least this: -1 always, 0 unless -q, 1 with -v
    int32_t level;
    char text[]; // may hold several lines
};

struct wire_print {
    int32_t thread;                     // as reports number it
    char thread_name[WIRE_THREAD_NAME]; // terminated; empty: it has none of its own
    uint32_t pc_count; // exactly this many pcs follow: the stack to show; then the terminated text
    uint64_t pcs[];
};

struct wire_heap {
    uint64_t size; // of the area
};

enum wire_state {
    WIRE_IDLE,    // has taken all that it has received
    WIRE_WORKING, // takes messages
    WIRE_WRITING, // the same, and writes to the log or the XML, whose reader may be slow
};

// A place that reports go to.
struct wire_place {
    uint64_t device, inode; // both 0: none
};

struct wire_board {
    uint32_t turn;  // changes whenever the supervisor may have become idle; a futex
    uint32_t state; // enum wire_state
    uint64_t taken; // messages, whose text is written
    struct wire_place log, xml;
};

// The configuration: this header, then `count` NUL-terminated strings "name=value" in `size` bytes.
// An option that may be repeated appears several times.
struct wire_config {
    uint32_t magic;
    uint32_t version;
    uint32_t size;
    uint32_t count;
    struct wire_board board;
    char options[];
};

#endif
