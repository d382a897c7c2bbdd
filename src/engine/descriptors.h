// The engine's own file descriptors, which have high numbers to be out of the target's way.
#ifndef QUERN_ENGINE_DESCRIPTORS_H
#define QUERN_ENGINE_DESCRIPTORS_H

// Moves a descriptor to the highest free number. Returns that number.
int descriptor_hide(int fd);
// The same for the highest free number at or below `highest`.
int descriptor_hide_below(int fd, int highest);

#endif
