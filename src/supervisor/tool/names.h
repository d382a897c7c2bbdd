// Part of supervisor/tool.h: from addresses to what a user reads.
//
//   symbols      run->symbols names addresses of every process of the run, by symbols_resolve and
//                its kin. The supervisor keeps its mappings up to date where the engine reports
//                them. A tool that learns of mappings in another way (samples) makes symbols of
//                its own and reports them to those.
//   stack_text   a frame or a stack as lines of text, in Valgrind's form. Names come from the
//                target: print none that stack_text_escaped has not written.
//   named_stack  a stack with the names of its frames, for findings and for files of stacks.
//   own          whether a frame is the user's, or belongs to a library or a runtime.
//   heap_names   which frames of an allocation are shown: without malloc and its kin at the inner
//                end (--alloc-fn, --ignore-fn).
//
// Names are expensive: the first one of a file reads its debug information. Ask for those that are
// shown, once the target has ended or when the user requests a report, never for every event.
#ifndef QUERN_SUPERVISOR_TOOL_NAMES_H
#define QUERN_SUPERVISOR_TOOL_NAMES_H

#include "report/heap/names.h"
#include "report/shared/named_stack.h"
#include "report/shared/own.h"
#include "report/shared/stack_text.h"
#include "symbols/symbols.h"

#endif
