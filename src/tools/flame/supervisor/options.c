// The options of flame.
#include "base/option_table.h"
#include "tools/flame/supervisor/options.h"

const struct option flame_options[] = {
    {LOCAL, NUMBER("freq", "997", 1, 50000), .value = "HERTZ",
     .help = "samples per second of CPU time, for each thread"},
    {LOCAL, NUMBER("stack-bytes", "32768", 1024, 65000),
     .help = "bytes of the stack to copy with each sample"},
    {LOCAL, CHOICE("sampler", "any|perf|timers", "any"),
     .help = "use the kernel (perf), CPU timers of threads, or what is permitted"},
    {LOCAL, BOOL("kernel-time", "yes"), .help = "sample time in the kernel too, where permitted"},
    {LOCAL, BOOL("kernel-stacks", "yes"), .help = "show functions of the kernel, where permitted"},
    {LOCAL, CHOICE("python-stacks", "auto|yes|no", "auto"), .also = "heap|massif|dhat",
     .help = "show functions of Python 3.11 to 3.13; auto: if the program is python3 (flame), or "
             "has it"},
    {LOCAL, BOOL("python-lines", "no"),
     .help = "tell apart the lines of a function of Python, not only functions"},
    {LOCAL, BOOL("off-cpu", "no"), .help = "also show where threads wait, and for how long"},
    {LOCAL, NAMED("off-cpu-out-file", "flame.%p.off-cpu.svg"), .only_with = "off-cpu",
     .help = "file for the flame graph of waits"},
    {LOCAL, NAMED("off-cpu-stacks-file", "flame.%p.off-cpu.stacks"), .only_with = "off-cpu",
     .help = "file for the profile of waits"},
    {LOCAL, BOOL("fold-runtimes", "no"),
     .help = "show frames of Rust's libraries and executors as one"},
    {LOCAL, BOOL("flame-inverted", "no"), .help = "draw the graph from the top down"},
    {LOCAL, NAMED("flame-out-file", "flame.%p.svg"), .help = "file for the flame graph"},
    {LOCAL, NAMED("flame-stacks-file", "flame.%p.stacks"),
     .help = "profile file for quern print, export, view"},
    {LOCAL, NAMED("flame-collapsed-file", NULL),
     .help = "also write folded stacks, for flamegraph.pl, to this file"},
    {0},
};
