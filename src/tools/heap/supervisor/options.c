// The options of massif and heap.
#include "base/option_table.h"
#include "tools/heap/supervisor/options.h"

const struct option massif_options[] = {
    {BOOL("heap", "yes"), .help = "profile the heap"},
    {NUMBER("heap-admin", "8", 0, 1024), .help = "bytes of overhead to count per block"},
    {BOOL("stacks", "no"), .help = "profile stacks too (slower: translates)"},
    {BOOL("pages-as-heap", "no"),
     .help = "profile mapped pages, not heap blocks (slower: translates)"},
    {NUMBER("depth", "30", 1, 200), .help = "maximum depth of allocation trees"},
    {STRING("alloc-fn", "NAME", NULL), ALL_MANY, .help = "treat this function as an allocator"},
    {STRING("ignore-fn", "NAME", NULL), ALL_MANY,
     .help = "do not count allocations by this function"},
    {DECIMAL("threshold", "1.0", 0, 100), .help = "smallest share to show, in percent"},
    {DECIMAL("peak-inaccuracy", "1.0", 0, 100), .help = "maximum error of the peak, in percent"},
    {CHOICE("time-unit", "i|ms|B", "ms"),
     .help = "instructions (slower: translates), milliseconds or bytes"},
    {NUMBER("detailed-freq", "10", 1, 1000000), .help = "make one of this many snapshots detailed"},
    {NUMBER("max-snapshots", "100", 10, 1000), .help = "maximum number of snapshots"},
    {NAMED("massif-out-file", "massif.out.%p"), .help = "output file"},
    {0},
};

const struct option heap_options[] = {
    {LOCAL, NAMED("heap-out-file", "heap.%p.quern"), .help = "file for the recording"},
    {LOCAL, NUMBER("pid", NULL, 1, INT_MAX), .value = "PID", .also = "massif|dhat",
     .help = "record a process that runs already, until it ends, --duration is over, or Ctrl+C"},
    {LOCAL, CHOICE("census", "auto|yes|no", "auto"), .also = "massif|dhat",
     .help = "with --pid: list blocks from before, by holder; auto: if that stops the process for "
             "less than 50 ms"},
    {LOCAL, NUMBER("top", "10", 0, 1000), .help = "number of functions in the summary at the end"},
    {LOCAL, .name = "max-size", .type = OPTION_SIZE, .initial = "0", .least = 16384, V1,
     .help = "merge old details to keep the recording below this; 0: never"},
    {LOCAL, .name = "max-peak", .type = OPTION_SIZE, V1, .also = "massif|dhat|memcheck",
     .help = "fail if the peak of live heap bytes is higher"},
    {LOCAL, .name = "max-leaked", .type = OPTION_SIZE, V1, .also = "massif|dhat|memcheck",
     .help = "fail if more bytes are not freed at exit (memcheck: lost)"},
    {LOCAL, .name = "max-allocs", .type = OPTION_SIZE, V1, .also = "massif|dhat|memcheck",
     .help = "fail if more blocks are allocated"},
    {LOCAL, .name = "max-growth", .type = OPTION_SIZE, .value = "SIZE[/min]", V1,
     .also = "massif|dhat|memcheck", .help = "fail if the heap grows faster after the warm-up"},
    {LOCAL, CHOICE("diagnose", "auto|yes|no|error", "auto"), .also = "dhat|memcheck",
     .help = "report problems in the use of memory; error: and fail if there are any; auto: yes, "
             "but dhat and memcheck on a terminal only"},
    {LOCAL, NUMBER("heap-depth", "120", 1, 250),
     .help = "maximum number of frames to record per stack"},
    {0},
};
