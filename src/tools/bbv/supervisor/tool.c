// How the supervisor sees exp-bbv.
#include <stdlib.h>

#include "base/option_table.h"
#include "tools/bbv/supervisor/bbv.h"

static const struct option options[] = {
    {NAMED("bb-out-file", "bb.out.%p"), LOCAL,
     .help = "basic block vectors; further threads: FILE.THREAD"},
    {NAMED("pc-out-file", "pc.out.%p"), LOCAL,
     .help = "addresses and functions of blocks, written if this option is given"},
    {BOOL("generate-pc-file", "no"), LOCAL, .help = "write --pc-out-file by its default name"},
    {NUMBER("interval-size", "100000000", 1, LONG_MAX), .help = "instructions per vector"},
    {BOOL("instr-count-only", "no"), .help = "count instructions, write no vectors"},
    {0},
};

static void *bbv_settings(struct tool_setup *setup) {
    const struct option_values *values = setup->values;
    struct bbv_settings *settings = base_allocate(sizeof *settings);
    bool wants_pcs = option_given(values, "pc-out-file") || option_yes(values, "generate-pc-file");
    *settings = (struct bbv_settings){
        .bb_out_file = option_text(values, "bb-out-file"),
        .pc_out_file = wants_pcs ? option_text(values, "pc-out-file") : NULL,
        .interval_size = (uint64_t)option_number(values, "interval-size"),
    };
    setup->symbols->no_lines = true;
    setup->symbols->no_inlined = true;
    setup->symbols->keep_unmapped = true;
    return settings;
}

static bool take_message(struct tool_run *run, struct followed *process,
                         const struct wire_message *message) {
    if (message->type != WIRE_FILE)
        return false;
    bbv_take_file(run, process, message->fd);
    return true;
}

const struct supervisor_tool supervisor_exp_bbv = {
    .name = "exp-bbv",
    .help = "basic block vectors",
    .options = options,
    .settings = bbv_settings,
    .release = free,
    .message = take_message,
    .ended = bbv_finish,
};
