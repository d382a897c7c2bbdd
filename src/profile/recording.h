// Recordings: the history of a heap in a file (*.quern). docs/formats.md describes the bytes.
//
// Words:
//   chunk    a compressed run of records that can be read by itself; what is written reaches the
//            file a chunk at a time, at least once a second
//   record   an event, or something that events refer to (a stack, a mapping, a thread)
//
// The writer is a sink; the reader is a source, so that whatever reads a running target reads a
// recording too. The reader streams: its memory is bounded by the live blocks and the stacks, not
// by the file. It trusts nothing: a file that is cut off gives what it holds, a damaged one gives
// what comes before the damage, and either is said. Supervisor context.
#ifndef QUERN_PROFILE_RECORDING_H
#define QUERN_PROFILE_RECORDING_H

#include "profile/heap.h"

#define RECORDING_MAGIC       "QUERNREC"
#define RECORDING_VERSION     1
#define RECORDING_CHUNK_MAGIC 0x4b4e4843u // "CHNK" in memory
#define RECORDING_CHUNK_MAX   (4u << 20)  // bytes of records in a chunk
#define RECORDING_STRING_MAX  65536
#define RECORDING_TIME_UNIT   100000 // nanoseconds

struct recording_header {
    char magic[8];
    uint32_t version;
    uint32_t reserved; // 0
};

struct recording_chunk {
    uint32_t magic;
    uint32_t packed; // bytes that follow: one zstd frame with a checksum
    uint32_t plain;  // bytes it holds
    uint32_t reserved;
};

enum recording_kind {
    RECORDING_PROCESS = 1,
    RECORDING_MAPPING = 2,
    RECORDING_STACK = 3,
    RECORDING_THREAD_STARTS = 4,
    RECORDING_THREAD = 5,
    RECORDING_TIME = 6,
    RECORDING_ALLOCATED = 7,
    RECORDING_FREED = 8,
    RECORDING_RESIZED = 9,
    RECORDING_END = 10,
};

// What a recording is of.
struct recording_process {
    int pid;
    uint64_t started; // seconds since 1970
    const char *command;
};

// How it ended, by the word of the recorder.
struct recording_end {
    uint64_t time; // nanoseconds
    uint64_t missed, unknown;
};

// ---- writing ----

struct recording_writer;

// Takes the descriptor over. The first chunk is written at once.
struct recording_writer *recording_create(int fd, const struct recording_process *process);
void recording_sink(struct recording_writer *writer, struct heap_sink *sink);
// Writes what has been waiting for more than a second (`now` in nanoseconds, any clock).
void recording_tick(struct recording_writer *writer, uint64_t now);
// Writes the rest and closes. 0, or the number of the first error there was.
int recording_close(struct recording_writer *writer, const struct recording_end *end);
uint64_t recording_size(const struct recording_writer *writer);

// ---- reading ----

struct recording_info {
    struct recording_process process; // command is to be freed
    bool is_complete;                 // the end was written
    struct recording_end end;         // if complete; else only `time`, of the last event
    uint64_t allocated, freed, resized;
    char *damage; // where and what, NULL if there is none; to be freed
};

// Reads a recording from its beginning and tells it to the sinks. False, with damage set, if it is
// none, or of another version; true also if it is damaged further on.
bool recording_read(int fd, const struct heap_sink *sinks, size_t count,
                    struct recording_info *info);
void recording_info_free(struct recording_info *info);

#endif
