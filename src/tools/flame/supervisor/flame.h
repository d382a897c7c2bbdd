// --tool=flame: samples of a natively running target, made into a flame graph.
//
// Words: an *image* is a program in a process, from its exec to the next or to the process's end;
// it is followed or not. Stacks are kept as addresses and are given names at the end, when naming
// cannot delay the reading of samples, or before when they have grown too many.
//
// Memory is bounded: STACKS_BYTES of stacks, NODES_MAX of the tree, and what symbols need.
#ifndef QUERN_TOOLS_FLAME_FLAME_H
#define QUERN_TOOLS_FLAME_FLAME_H

#include "profile/stacks/calltree.h"
#include "profile/stacks/stack_counts.h"
#include "supervisor/tool.h"
#include "tools/shared/supervisor/interpreted.h"
#include "tools/flame/supervisor/moments.h"
#include "tools/flame/supervisor/sampler.h"
#include "tools/flame/supervisor/space.h"
#include "tools/flame/supervisor/waits.h"

struct flame_settings {
    unsigned frequency; // samples in a second of CPU time
    size_t stack_bytes; // of the stack, copied with each sample
    bool children;      // programs that the target executes are sampled too
    enum flame_sampler sampler;
    char *agent;                                // path of quern-sampler.so; NULL: it is missing
    bool is_static;                             // the program: nothing can be preloaded
    bool without_kernel;                        // time in the kernel does not count
    bool kernel_stacks;                         // the kernel's part of stacks, where permitted
    bool kernel_stacks_asked;                   // by the user
    bool interpreters;                          // frames of Python, read by timers
    bool python_lines;                          // lines of functions of Python are told apart
    bool off_cpu;                               // waits are reported, too
    const char *waits_file, *waits_stacks_file; // templates
    bool fold_runtimes;                         // frames of runtimes are folded
    bool fold_others;                           // all that are not the user's are (--mine)
    bool inverted;
    bool all_inlined;        // also where debug information is in a file of its own
    const char *out_file;    // template
    const char *stacks_file; // template
    const char *folded_file; // template, NULL: not wanted
};

// The state of a run.
struct flame {
    struct flame_settings settings;
    const struct tool_run *run;
    struct sampler *sampler;
    bool main_executed;
    char *left_out; // what the main process has executed, and is not sampled; NULL: nothing
    struct image **images;
    size_t image_count;
    uint32_t last_key;
    struct symbols *symbols;
    struct flame_code *code; // while stacks are named
    struct stack_counts stacks;
    struct calltree *tree;
    struct calltree *waits_tree; // NULL: not wanted
    struct flame_waits waits;
    struct interpreted interpreted;
    struct moments moments;
    uint64_t ends[FLAME_END_COUNT];
    uint64_t sample_count;
    bool is_off; // by `quern ctl`
};

// Hooks of supervisor/tool.h.
bool flame_choose(struct tool_run *run);
void flame_enter(struct tool_run *run, int wire, int config);
bool flame_open(struct tool_run *run);
void flame_drain(struct tool_run *run);
bool flame_request(struct tool_run *run, const char *request, struct text *answer);
int64_t flame_timeout(struct tool_run *run);

// The main process has ended: takes the rest and names all stacks. How many sampled processes go
// on.
size_t flame_gather(struct flame *flame);
// flame_gather, then writes the files and reports.
void flame_report(struct flame *flame);
// Frees what was gathered.
void flame_close(struct flame *flame);

#endif
