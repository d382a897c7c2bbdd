// The inside of heap.h, shared by heap.c (what is made of a process), supervisor/wishes.c (quern ctl) and
// supervisor/leaks.c (the search for leaks). Nobody else includes this.
#ifndef QUERN_SUPERVISOR_HEAP_PARTS_H
#define QUERN_SUPERVISOR_HEAP_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "profile/heap/lifetimes.h"
#include "profile/heap/massif.h"
#include "profile/recording/recording.h"
#include "profile/stacks/stacks.h"
#include "profile/heap/summary.h"
#include "tools/heap/supervisor/source.h"
#include "supervisor/supervisor.h"

// What holds most of the memory of a stack, as the latest search for leaks has found it.
struct heap_holder {
    uint64_t root;  // 0: not known
    uint32_t steps; // of the first block
    uint64_t votes; // while it is being looked for
};

// A recorded process.
struct heap_process {
    int pid;
    struct heap_source *source;
    struct stacks stacks; // of tools massif and dhat; the summary has those of tool heap
    struct heap_names *names;
    struct massif *massif;           // of tool massif
    struct recording_writer *writer; // of tool heap, as is the summary
    struct summary summary;
    struct lifetimes *lifetimes; // of tool dhat
    char *path;                  // of the recording
    struct heap_holder *holders; // by stack; NULL: there was no search
    size_t holder_count;
    struct heap_stack_pointer {
        uint64_t pointer;
        int thread;
    } * stack_pointers; // of its threads, at that time
    size_t stack_pointer_count;
    int stat;                       // /proc/PID/stat, open; -1: not
    uint64_t attached, next_sample; // nanoseconds, of CLOCK_MONOTONIC
    unsigned files;                 // written on demand
};

// ---- heap.c ----

const struct heap_settings *heap_settings(void);
size_t heap_process_count(void);
struct heap_process *heap_process_at(size_t index);
struct heap_process *heap_process_find(int pid);
struct symbols *heap_symbols(void);
// Writes massif's file as of now; its name gets `.number` at the end unless that is 0. The name, to
// be freed; NULL after a message.
char *heap_write_massif(struct heap_process *process, unsigned number);

// ---- supervisor/xtree.c ----

void heap_write_xtree(struct heap_process *, const struct supervisor_request *); // if it is wanted

// ---- supervisor/leaks.c ----

// Who wants a search: somebody who asks while the process goes on, or is it about to be stopped, or
// does it wait to end? What the last two find are results for other programs.
enum heap_search { SEARCH_ASKED, SEARCH_STOPPING, SEARCH_ENDING };
// Searches the process and shows what there is in the log. `sums` gets the summary; if false, what
// is wrong.
bool heap_search_leaks(struct heap_process *process, enum heap_search why, struct text *sums);
// What holds the memory of a stack, in words, to be freed; "": that is not known.
char *heap_holder_text(struct heap_process *process, uint32_t stack);

#endif
