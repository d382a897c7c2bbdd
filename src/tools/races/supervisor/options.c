// The options of helgrind.
#include "base/option_table.h"
#include "tools/races/supervisor/races.h"

const struct option races_options[] = {
    {SIZE("conflict-cache-size", "2000000"),
     .help = "accesses that are remembered, to show the older side of a race"},
    {CHOICE("history-level", "none|approx|full", "full"),
     NO_EFFECT("Quern always keeps the full history"),
     .help = "how much to say of the older side of a race"},
    {BOOL("track-lockorders", "yes"), .help = "report locks that are taken in different orders"},
    {BOOL("delta-stacktrace", "yes"), NO_EFFECT("Quern finds out by itself what is cheaper"),
     .help = "derive a stack from the one before"},
    {BOOL("cmp-race-err-addrs", "no"), NO_EFFECT("races are told apart by their instructions"),
     .help = "report the same race at another address once more"},
    {BOOL("check-cond-signal-mutex", "no"), NO_EFFECT("not checked yet"),
     .help = "report signals of a condition variable without its mutex"},
    {BOOL("free-is-write", "no"), NO_EFFECT("not checked yet"),
     .help = "treat the freeing of a block as a write to it"},
    {BOOL("ignore-thread-creation", "no"), NO_EFFECT("there is nothing to ignore"),
     .help = "ignore what is done while a thread is created"},
    {0},
};
