// The engine's own file descriptors, whose numbers are out of the target's way: above the target's
// limit if the kernel permits that, otherwise as high as possible.
#ifndef QUERN_ENGINE_DESCRIPTORS_H
#define QUERN_ENGINE_DESCRIPTORS_H

// A number for the descriptor that is out of the target's way: its own, or that of a duplicate. The
// caller closes the original then.
int descriptor_hide(int fd);
// Duplicates the descriptor to the highest free number below its own. Returns that number, or fd.
int descriptor_duplicate_below(int fd);

#endif
