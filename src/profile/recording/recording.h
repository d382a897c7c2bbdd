// Recordings: the history of a heap in a file (*.quern). docs/formats.md describes the bytes.
//
// Words:
//   chunk    a compressed sequence of records that can be read by itself. The writer writes one
//            chunk at a time: events at least once a second, samples alone every ten seconds
//   record   an event, or something that events refer to (a stack, a mapping, a thread)
//   column   the numbers of one sort from all records of a chunk, one after the other. Similar
//            numbers stand together, so they compress well
//
// For a block that is freed or resized, the writer writes only its group (classes.h), and the
// reader takes the oldest block of the group. But the writer always names one of the latest blocks
// of a thread, so that the reader knows whether a release directly followed the allocation. The two
// rules agree: the oldest block of a group is among the latest only if the meant block is, too.
//
// A recording with a size limit is merged from time to time (recording_merge): it is rewritten with
// time in steps. Blocks that were allocated and freed within a step are only counted, by thread and
// class; resizes within a step become one. Steps end at the last event of the recording so far, at
// the peak, and at regular intervals in between. So the set of live blocks at the end of a step is
// exact, and so are all sums.
//
// The writer is a sink and the reader is a source, so code that reads a running target also reads a
// recording. The reader streams: the live blocks and the stacks bound its memory, not the file. It
// trusts nothing: it uses the content of a file that is cut off, and what comes before the damage
// in a damaged one, and reports both. Supervisor context.
#ifndef QUERN_PROFILE_RECORDING_H
#define QUERN_PROFILE_RECORDING_H

#include "profile/heap/heap.h"

#define RECORDING_MAGIC       "QUERNREC"
#define RECORDING_VERSION     6
#define RECORDING_NEAR        5           // from this version on, stacks are stored as differences
#define RECORDING_SPLIT       6           // from this version on, samples tell anonymous memory
#define RECORDING_OLDEST      2           // the oldest version that is read
#define RECORDING_CHUNK_MAGIC 0x4b4e4843u // "CHNK" in memory
#define RECORDING_CHUNK_MAX   (4u << 20)  // bytes of records in a chunk
#define RECORDING_STRING_MAX  65536
#define RECORDING_TIME_UNIT   100000  // nanoseconds
#define RECORDING_TIME_SHARED 2000000 // nanoseconds: events closer together may share a time
#define RECORDING_PAGE        4096    // bytes: the unit of samples

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
    RECORDING_CODE = 42,
    RECORDING_THREAD_STATE = 43, // since version 6
};

#define RECORDING_RECENT 4

// Threads take turns in a recording. The data of a thread's records is in the columns of its lane,
// so that other threads do not interrupt its patterns.
#define RECORDING_LANES 8 // a power of two; threads share them by number

// Columns of a lane.
enum recording_sort {
    SORT_KINDS,   // of the records, a byte each
    SORT_CLASSES, // of allocated blocks
    SORT_FROM,    // classes of blocks that are freed or resized
    SORT_STEPS,   // to their groups, or the groups themselves
    SORT_TO,      // classes that blocks are resized to
    SORT_SIZES,   // of blocks of loose classes
    SORT_COUNT,
};

// The other columns stand in front of those.
enum recording_column {
    COLUMN_TURNS,  // a thread and the number of its records before the next turn
    COLUMN_NEW,    // stack and size of new classes
    COLUMN_STACKS, // stacks, their pcs by number
    COLUMN_PCS,    // new pcs
    COLUMN_REST,
    COLUMN_LANES,
    COLUMN_COUNT = COLUMN_LANES + RECORDING_LANES * SORT_COUNT,
};

// The recorded process.
struct recording_process {
    int pid;
    uint64_t started; // seconds since 1970
    const char *command;
};

// How it ended, as the recorder reports it.
struct recording_end {
    uint64_t time; // nanoseconds
    uint64_t missed, unknown;
};

// ---- writing ----

struct recording_writer;
struct summary;
struct timeline;

// Takes over the descriptor. Writes the first chunk at once.
struct recording_writer *recording_create(int fd, const struct recording_process *process);
void recording_sink(struct recording_writer *writer, struct heap_sink *sink);
// Writes records that have waited long enough (`now` in nanoseconds, any clock).
void recording_tick(struct recording_writer *writer, uint64_t now);
// Writes all pending records, so that a reader finds them.
void recording_flush(struct recording_writer *writer);
// Sets the sums of the events; recording_close reads them for the index.
void recording_set_sums(struct recording_writer *writer, const struct summary *sums);
// Writes a text that says what holds most remaining blocks of a stack. Call it at the end.
void recording_held(struct recording_writer *writer, uint32_t stack, const char *holder);
// Writes the name of code that is in no file. Call it at the end.
void recording_code(struct recording_writer *writer, const struct heap_code *code);
// Writes the rest and closes. Returns 0 or the number of the first error.
int recording_close(struct recording_writer *writer, const struct recording_end *end);
uint64_t recording_size(const struct recording_writer *writer);

// How far detail has been merged.
struct recording_merges {
    uint64_t until;    // nanoseconds; 0: nothing has been merged
    uint64_t steps;    // number of steps up to then
    uint64_t longest;  // nanoseconds
    bool is_too_large; // for a writer: the recording could not be made as small as requested
};
struct recording_merges recording_merges(const struct recording_writer *writer);

// ---- recording/merge.c ----

// Sets the maximum size of the recording in bytes.
void recording_set_most(struct recording_writer *writer, uint64_t most);
// Whether it is time to merge.
bool recording_is_full(const struct recording_writer *writer);
// Gives access to the live blocks of their owner: `each` calls `replace` for every block, to change
// its `place`.
struct recording_places {
    void *context;
    void (*each)(void *context, void (*replace)(void *context, struct heap_block *block),
                 void *replace_context);
};
// Rewrites the recording into the file `fd`, takes over the descriptor, and continues there. `from`
// is the current file. Blocks get new places. False with errno: nothing has changed.
bool recording_merge(struct recording_writer *writer, int from, int fd,
                     const struct recording_places *places);

// ---- reading ----

struct recording_info {
    struct recording_process process; // command is to be freed
    bool is_complete;                 // the file has an end record
    bool is_live;                     // it has none yet: a process is writing the file
    struct recording_end end;         // if complete; otherwise only `time`, of the last event
    uint64_t allocated, freed, resized;
    struct recording_merges merges;
    char *damage; // where and what, NULL if there is none; to be freed
};

// Reads a recording from its beginning and calls the sinks. False, with damage set, if the file is
// not a recording or has an unknown version, or if the reading was cancelled (base/progress.h).
// True also if it is damaged further on.
bool recording_read(int fd, const struct heap_sink *sinks, size_t count,
                    struct recording_info *info);
// The same without events: it takes their sums from the index of the file and puts them into the
// summary, which must be one of the sinks, and into the timeline (likewise, or NULL). It reports no
// unfreed blocks. False: the file has no index or is damaged, or the index does not agree with the
// file. The descriptor is then where it was, and the data in the sinks is useless.
bool recording_read_sums(int fd, const struct heap_sink *sinks, size_t count,
                         struct summary *summary, struct timeline *timeline,
                         struct recording_info *info);
// The same for sinks that take neither events nor sums: for a file that recording_read_sums has
// read. False: it has changed since.
bool recording_skim(int fd, const struct heap_sink *sinks, size_t count,
                    struct recording_info *info);
// Reads a recording while it is being written. Where the file ends, the reader calls `wait`, between
// whole chunks or within one that is not complete yet: true means that there may be more now. False
// ends the reading, as does the end record. Otherwise as recording_read.
struct recording_wait {
    void *context;
    bool (*wait)(void *context);
};
bool recording_follow(int fd, const struct heap_sink *sinks, size_t count,
                      struct recording_info *info, const struct recording_wait *wait);
// Whether somebody holds the lock of a writer on the file.
bool recording_is_being_written(int fd);
void recording_info_free(struct recording_info *info);

#endif
