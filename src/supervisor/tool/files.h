// Part of supervisor/tool.h, for tools that write profiles: the formats that a verb reads again, so
// that writer and reader stand side by side in src/report. A format that only one tool knows is
// written in the folder of that tool.
//
//   callgrind.h   callgrind.out and cachegrind.out, from a call graph (profile/costs/call_graph.h)
//   dhat/file.h   dhat.out, from program points
//   massif/out.h  massif.out, from snapshots (profile/heap/massif.h)
//   flamegraph.h, folded.h, stack_file.h, tree_text.h
//                 a tree of calls (profile/stacks/calltree.h) as SVG, folded stacks, Quern's file
//                 of stacks, text
//   heap/text.h   the summary of a recorded heap for the log
//   xtree_file.h  values by call stack, in callgrind's or massif's format (--xtree-memory)
//
// Recordings are written by profile/recording. Writers add text or write to a FILE; the tool opens
// the file (base/template.h makes its name) and reports a failure with log_cannot_write.
#ifndef QUERN_SUPERVISOR_TOOL_FILES_H
#define QUERN_SUPERVISOR_TOOL_FILES_H

#include "report/callgrind/callgrind.h"
#include "report/dhat/file.h"
#include "report/flame/flamegraph.h"
#include "report/flame/folded.h"
#include "report/flame/stack_file.h"
#include "report/heap/text.h"
#include "report/massif/out.h"
#include "report/shared/tree_text.h"
#include "supervisor/xtree_file.h"

#endif
