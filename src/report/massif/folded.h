// A massif.out as folded stacks: the tree of its peak, or of its largest detailed snapshot if it
// has no peak. Addresses and source lines are left out, as everywhere in folded stacks. The node
// [below threshold] stands for what the file sums up under that name.
#ifndef QUERN_REPORT_MASSIF_FOLDED_H
#define QUERN_REPORT_MASSIF_FOLDED_H

#include "profile/stacks/calltree.h"
#include "report/massif/file.h"

// False if no snapshot has a tree.
bool massif_folded(FILE *out, const struct massif_file *file);
// The same as a tree of calls, of a snapshot that has one; functions are grouped by module.
struct calltree *massif_folded_tree(const struct massif_file *file,
                                    const struct massif_file_snapshot *snapshot, size_t nodes);
// The parts of a frame "0x1234: FUNC (FILE:LINE)" or "0x1234: FUNC (in MODULE)", which dhat.out
// files have, too. To be freed.
char *massif_folded_label(const char *text);
char *massif_folded_module(const char *text); // "" if the frame has none

#endif
