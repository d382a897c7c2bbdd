// Recordings: the history of a heap in a file (*.quern). docs/formats.md describes the bytes.
//
// Words:
//   chunk    a compressed run of records that can be read by itself; what is written reaches the
//            file a chunk at a time, events at least once a second, samples
//            alone every ten
//   record   an event, or something that events refer to (a stack, a mapping, a thread)
//   column   the numbers of one sort from all records of a chunk, one behind the other: what is
//            alike stands together, which is why it packs well
//
// Of a block that is freed or resized only its group is written (classes.h), and the reader takes
// the oldest one of that. But one of the latest blocks that a thread has allocated is always named:
// so it is known whether a release came straight after the allocation. Both rules go together
// because the oldest of a group is not among the latest unless the one that is meant is.
//
// A recording that is to stay small is merged from time to time (recording_merge): it is written
// anew, with time in steps. Blocks that came and went within a step are only counted, by thread and
// class; resizes within a step become one. Steps end where the last event of the recording so far
// stood, at the peak, and at regular intervals in between, so what is alive at the end of a step is
// exact, and so are all sums.
//
// The writer is a sink; the reader is a source, so that whatever reads a running target reads a
// recording too. The reader streams: its memory is bounded by the live blocks and the stacks, not
// by the file. It trusts nothing: a file that is cut off gives what it holds, a damaged one gives
// what comes before the damage, and either is said. Supervisor context.
#ifndef QUERN_PROFILE_RECORDING_H
#define QUERN_PROFILE_RECORDING_H

#include "profile/heap/heap.h"

#define RECORDING_MAGIC       "QUERNREC"
#define RECORDING_VERSION     5
#define RECORDING_NEAR        5           // from here on stacks are given as differences
#define RECORDING_OLDEST      2           // that is read
#define RECORDING_CHUNK_MAGIC 0x4b4e4843u // "CHNK" in memory
#define RECORDING_CHUNK_MAX   (4u << 20)  // bytes of records in a chunk
#define RECORDING_STRING_MAX  65536
#define RECORDING_TIME_UNIT   100000 // nanoseconds
#define RECORDING_PAGE        4096   // bytes: what samples count in

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
    RECORDING_TIME = 5,
    RECORDING_ALLOCATED = 6,
    RECORDING_FREED = 7,
    RECORDING_FREED_GROUP = 8,
    RECORDING_RESIZED = 9,
    RECORDING_RESIZED_GROUP = 10,
    RECORDING_END = 11,
    RECORDING_NAME = 12,
    RECORDING_SAMPLE = 13,
    RECORDING_MAPPED = 14,
    RECORDING_UNMAPPED = 15,
    // One of the thread's latest blocks: how many of its allocations ago is added to the kind.
    RECORDING_FREED_RECENT = 16,
    RECORDING_RESIZED_RECENT = 20,
    // The same of another thread.
    RECORDING_FREED_FOREIGN = 24,
    RECORDING_RESIZED_FOREIGN = 25,
    // Merged detail: since version 3.
    RECORDING_STEP_BEGINS = 26,
    RECORDING_STEP_ENDS = 27,
    RECORDING_MERGED = 28,
    RECORDING_CORRECTED = 29,
    RECORDING_MARK = 40,
    RECORDING_HELD = 41,
};

#define RECORDING_RECENT 4

// Threads take turns in a recording. What a thread's records consist of is in the columns of its
// lane, so that the patterns of one thread are not torn apart by those of others.
#define RECORDING_LANES 8 // a power of two; threads share them by number

// Columns of a lane.
enum recording_sort {
    SORT_KINDS,   // of the records, a byte each
    SORT_CLASSES, // of allocated blocks
    SORT_FROM,    // classes of blocks that are freed or resized
    SORT_STEPS,   // to their groups, or the groups themselves
    SORT_TO,      // classes that blocks are resized to
    SORT_SIZES,   // of blocks that come to loose classes
    SORT_COUNT,
};

// The other columns stand in front of those.
enum recording_column {
    COLUMN_TURNS,  // a thread and how many records it has before the next one's turn
    COLUMN_NEW,    // stack and size of new classes
    COLUMN_STACKS, // stacks, their pcs by number
    COLUMN_PCS,    // pcs that are not known yet
    COLUMN_REST,
    COLUMN_LANES,
    COLUMN_COUNT = COLUMN_LANES + RECORDING_LANES * SORT_COUNT,
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
struct summary;
struct timeline;

// Takes the descriptor over. The first chunk is written at once.
struct recording_writer *recording_create(int fd, const struct recording_process *process);
void recording_sink(struct recording_writer *writer, struct heap_sink *sink);
// Writes what has been waiting for so long (`now` in nanoseconds, any clock).
void recording_tick(struct recording_writer *writer, uint64_t now);
// Writes what is there: a reader then finds all that was told.
void recording_flush(struct recording_writer *writer);
// What the events come to; looked at when the recording is closed, for its index.
void recording_set_sums(struct recording_writer *writer, const struct summary *sums);
// What holds most of the blocks of a stack that are left, in words. At the end.
void recording_held(struct recording_writer *writer, uint32_t stack, const char *holder);
// Writes the rest and closes. 0, or the number of the first error there was.
int recording_close(struct recording_writer *writer, const struct recording_end *end);
uint64_t recording_size(const struct recording_writer *writer);

// How far detail has been merged.
struct recording_merges {
    uint64_t until;    // nanoseconds; 0: nothing has been merged
    uint64_t steps;    // there are up to then
    uint64_t longest;  // nanoseconds
    bool is_too_large; // of a writer's: fewer bytes than were asked for were not possible
};
struct recording_merges recording_merges(const struct recording_writer *writer);

// ---- recording/merge.c ----

// From now on the recording is to have so many bytes at most.
void recording_set_most(struct recording_writer *writer, uint64_t most);
// Whether it is time to merge.
bool recording_is_full(const struct recording_writer *writer);
// Live blocks, wherever they are kept: `place` in each of them has to be given to a function.
struct recording_places {
    void *context;
    void (*each)(void *context, void (*replace)(void *context, struct heap_block *block),
                 void *replace_context);
};
// Writes the recording anew into the file `fd`, which is taken over, and goes on there. `from` is
// the file as it is. Blocks get new places. False with errno: nothing has changed.
bool recording_merge(struct recording_writer *writer, int from, int fd,
                     const struct recording_places *places);

// ---- reading ----

struct recording_info {
    struct recording_process process; // command is to be freed
    bool is_complete;                 // the end was written
    struct recording_end end;         // if complete; else only `time`, of the last event
    uint64_t allocated, freed, resized;
    struct recording_merges merges;
    char *damage; // where and what, NULL if there is none; to be freed
};

// Reads a recording from its beginning and tells it to the sinks. False, with damage set, if it is
// none, or of another version; true also if it is damaged further on.
bool recording_read(int fd, const struct heap_sink *sinks, size_t count,
                    struct recording_info *info);
// The same without events: what they come to is put into the summary, which is to be one of the
// sinks, and into the timeline, likewise or NULL, from the index of the file. Nothing is told of
// blocks that are left. False: it has no index, or is damaged, or the index does not agree with
// what is there; the descriptor is where it was, and what the sinks have been told is of no use.
bool recording_read_sums(int fd, const struct heap_sink *sinks, size_t count,
                         struct summary *summary, struct timeline *timeline,
                         struct recording_info *info);
void recording_info_free(struct recording_info *info);

#endif
