// The code that a sampled process has mapped, and the walking of its stacks.
//
// Files are read and their unwind tables compiled when a walk first comes through them. Supervisor
// only; nothing of the target is read but the bytes in the sample.
#ifndef QUERN_SUPERVISOR_FLAME_SPACE_H
#define QUERN_SUPERVISOR_FLAME_SPACE_H

#include "supervisor/tool.h"
#include "tools/flame/supervisor/sampler.h"

// The frames of a walk at most.
#define FLAME_FRAMES_MAX 2048
// The same for the kernel's part of a stack, which the kernel walks.
#define FLAME_KERNEL_MAX 512

// Why a stack is not complete, besides the reasons of unwind_end.
enum flame_end { FLAME_END_STACK_BYTES = UNWIND_END_COUNT, FLAME_END_NO_USER, FLAME_END_COUNT };

struct flame_space;

struct flame_space *flame_space_new(void);
// What a forked child has.
struct flame_space *flame_space_copy(const struct flame_space *space);
void flame_space_free(struct flame_space *space);
// Gives back what only walking needs: the process has ended.
void flame_space_rest(struct flame_space *space);
void flame_space_map(struct flame_space *space, const struct sampler_mapping *mapping);
// Where the first part of a file lies, given a mapping of its code; false: there is no such part.
// The kernel reports mappings of code only, and an offset in the file may belong to two parts.
bool flame_space_first_part(const struct sampler_mapping *mapping, struct sampler_mapping *part);
// The file of the code at an address, and the offset in it; NULL: none.
const char *flame_space_file(const struct flame_space *space, uint64_t address, uint64_t *offset);
// Walks a sample's stack: addresses within the functions, innermost first, and how many. *end says
// why it ended: an enum unwind_end or enum flame_end.
size_t flame_space_walk(struct flame_space *space, const struct sampler_sample *sample,
                        uint64_t *addresses, unsigned *end);
const char *flame_end_text(unsigned end);
// Whether the outer part of the stack is missing.
bool flame_end_is_broken(unsigned end);

#endif
