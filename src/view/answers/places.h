// Places: where memory is allocated, in terms of the program's own code.
//
// Words:
//   stack   a call stack of a recording, or a program point of a dhat.out
//   place   what stacks have in common that allocate at one line, function, file or library: that
//           of the first frame that is the program's own (own.h), or of the innermost frame
//
// Used by answers/places.c (the table) and answers/place.c (one place with source and stacks).
#ifndef QUERN_VIEW_PLACES_H
#define QUERN_VIEW_PLACES_H

#include "base/map.h"
#include "view/answers/answers.h"

// What is known about a place or a stack, in the order of the columns.
enum {
    PLACE_PEAK,   // bytes at the peak
    PLACE_BLOCKS, // blocks at the peak
    PLACE_TOTAL,  // bytes
    PLACE_COUNT,
    PLACE_TEMPORARY,
    PLACE_LEAKED, // bytes
    PLACE_LEFT,   // blocks that were not freed
    PLACE_VALUES,
};
extern const char *const place_values[PLACE_VALUES]; // their names

enum places_by { PLACES_BY_LINE, PLACES_BY_FUNCTION, PLACES_BY_FILE, PLACES_BY_LIBRARY };

struct place_frame {
    char *function, *path, *object; // path and object may be NULL
    uint32_t line;                  // 0: not known
};

struct place {
    struct place_frame frame; // of one of its stacks
    uint64_t values[PLACE_VALUES];
    uint32_t stacks; // number of them
};

struct places {
    struct place *list;
    size_t count;
    struct map_texts keys; // of the list
};

// NULL, or why the file has none, to be freed.
char *places_make(const struct document *document, enum places_by by, bool innermost,
                  struct places *places);
void places_free(struct places *places);

// What places are made of. `place` is the number of the frame that the stack's place is at.
struct place_stack {
    uint64_t values[PLACE_VALUES];
    struct place_frame *frames; // innermost first
    size_t count, place;
};
// Calls visit for each stack. False: the file has none.
bool places_visit(const struct document *document, bool innermost,
                  void (*visit)(void *context, const struct place_stack *stack), void *context);
// The key by which a frame finds its place.
void places_key(const struct place_frame *frame, enum places_by by, struct text *key);
enum places_by places_asked(const struct ask *ask);
void places_add_frame(const struct place_frame *frame, struct json *json);

#endif
