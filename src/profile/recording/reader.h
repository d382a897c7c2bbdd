// Internals of the reader of recordings, shared by recording/read.c (chunks, and the records that
// events refer to) and recording/events.c (events). No other file includes this.
//
// The reader trusts nothing in a file. Code that finds an error calls reader_wrong, which leaves
// nothing more to read, and continues with harmless numbers.
#ifndef QUERN_PROFILE_RECORDING_READER_H
#define QUERN_PROFILE_RECORDING_READER_H

#include "profile/heap/classes.h"
#include "profile/recording/index.h"

#define READER_MERGED_MAX (1ull << 36) // blocks in one record

// A live block. The blocks of a group are linked in the order in which they joined it.
struct reader_held {
    struct heap_block block;
    uint32_t group;          // 0: not in use
    uint32_t previous, next; // for an unused entry, `next` is the next unused one
};

// Where the latest blocks of a thread are, or were.
struct reader_recent {
    uint64_t count;
    uint32_t held[RECORDING_RECENT];
    uint64_t numbers[RECORDING_RECENT];
};

// The groups that a lane's releases name next, fetched into the cache in time. Groups and blocks
// are far apart in memory, so a reader that waited for each would mostly wait.
#define READER_AHEAD 16 // a power of two

struct reader_ahead {
    const uint8_t *at, *end;        // in the lane's column, beyond the numbers below
    uint32_t numbers[READER_AHEAD]; // of groups, or anything else in that column
    unsigned count;                 // of numbers so far in this chunk
};

// Merged blocks as they stand in the file: `count` of them of the block's stack, of `bytes` in all,
// allocated by its thread; of these `temporary` were.
struct reader_merged {
    struct heap_block block;
    uint64_t count, temporary, bytes;
};

struct reader {
    int fd;
    uint64_t position; // in the file, for messages
    const struct heap_sink *sinks;
    size_t sink_count;
    struct recording_info *info;
    const struct recording_index *index; // instead of events; NULL: read them
    const struct recording_wait *wait;   // at the end of the file; NULL: it is the end
    uint64_t skimmed[256];               // by kind, with an index: what it counts as
    struct classes classes;
    struct reader_held *held; // [0] is not used
    size_t held_room;
    uint32_t held_count, unused;
    struct reader_recent *recent; // by thread
    size_t recent_count;
    struct reader_column {
        const uint8_t *at, *end; // what is left of the chunk in hand
    } columns[COLUMN_COUNT];
    struct reader_ahead ahead[RECORDING_LANES];
    const char *problem; // the error in them; NULL: none
    uint64_t time;
    uint32_t thread, threads, stacks;
    uint32_t version;                  // of the file
    uint32_t last_new, last_described; // the stacks that those are from, by column
    uint64_t turn;                     // records that the thread still has
    int lane;                          // its first column
    uint64_t *pcs;                     // known ones; numbers are from 1 on
    uint64_t pc_count;
    struct heap_region *held_regions; // [0] is not used; `bytes` are those left
    size_t held_region_room;
    uint64_t regions;
    uint64_t last_pcs[HEAP_FRAMES_MAX];
    size_t last_count;
    struct heap_sample sample;
    bool is_merging;  // within a step
    uint64_t ordinal; // events sent to the sinks
    // Takes merged blocks at once; NULL: send them one by one.
    void (*take_merged)(void *context, const struct reader_merged *merged);
    // Called when the time advances, before the events of that time. May be NULL.
    void (*take_time)(void *context, uint64_t time);
    void *take_context;
};

// ---- recording/read.c ----

// Reads the whole file; descriptor, sinks and info are set. False: it is not a recording. The sinks
// do not get live blocks and the end.
bool reader_read(struct reader *reader);
void reader_close(struct reader *reader);
void reader_wrong(struct reader *reader, const char *what);
uint64_t reader_long_number(struct reader *reader, int column);

static inline uint64_t reader_number(struct reader *reader, int from) {
    struct reader_column *column = &reader->columns[from];
    if (column->at < column->end && *column->at < 128)
        return *column->at++;
    return reader_long_number(reader, from);
}

static inline uint64_t reader_rest(struct reader *reader) {
    return reader_number(reader, COLUMN_REST);
}

static inline uint64_t reader_bounded(struct reader *reader, int from, uint64_t most,
                                      const char *what) {
    uint64_t number = reader_number(reader, from);
    if (number <= most)
        return number;
    reader_wrong(reader, what);
    return 0;
}

// The number of a stack in a column.
uint32_t reader_stack(struct reader *reader, int column);
// The same for columns that store differences, if the file's version does so.
uint32_t reader_stack_near(struct reader *reader, int column, uint32_t *last);

// ---- recording/events.c ----

void reader_allocated(struct reader *reader);
// How a record names its block.
enum reader_way { READER_RECENT, READER_FOREIGN, READER_STEP, READER_GROUP };

// `age` selects one of the thread's latest blocks, for READER_RECENT.
void reader_freed(struct reader *reader, enum reader_way way, unsigned age);
void reader_resized(struct reader *reader, enum reader_way way, unsigned age);
void reader_step_begins(struct reader *reader);
void reader_step_ends(struct reader *reader);
void reader_merged(struct reader *reader);
void reader_corrected(struct reader *reader);
void reader_mapped(struct reader *reader);
void reader_unmapped(struct reader *reader);

#endif
