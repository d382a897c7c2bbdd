// Folding: the frames of runtimes between those of the program become one.
//
// A *run* is a sequence of neighbouring frames that are folded. It becomes one frame with the name
// of its runtime in brackets ([tokio], [std]): that of an executor or library, if one is among
// them, otherwise that of the language's library. A run between two asynchronous functions only
// passes their polls on; it is left out, so that awaits stand directly on each other.
//
// Without --mine, frames of Rust's libraries and executors are folded; with --mine, all frames that
// are not the user's. Supervisor only.
#ifndef QUERN_FLAME_FOLD_H
#define QUERN_FLAME_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/stacks/calltree.h"

struct flame_fold;

struct flame_fold *flame_fold_new(struct calltree *tree, bool only_mine);
void flame_fold_free(struct flame_fold *fold);
// Folds a path of functions of the tree, outermost first, in place; the number that is left.
size_t flame_fold_path(struct flame_fold *fold, uint32_t *path, size_t count);

#endif
