// Growable text for the supervisor's side: messages, log lines, generated documents.
//
// A text is always NUL-terminated once anything was added; `bytes` is NULL before that. Running
// out of memory ends the program with one line and status 1: there is nothing to report with.
// Not for the target's side: it allocates.
#ifndef QUERN_BASE_TEXT_H
#define QUERN_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *bytes;
    size_t size; // without the terminating NUL
    size_t room;
};

void text_add(struct text *text, const char *bytes, size_t size);
void text_string(struct text *text, const char *string);
void text_char(struct text *text, char c);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vformat(struct text *text, const char *format, va_list arguments);
// A number as people read it: 1,234,567.
void text_commas(struct text *text, uint64_t number);
enum { TEXT_NUMBER_SIZE = 32 };
// The same in memory of the caller's, of TEXT_NUMBER_SIZE bytes or more, which it returns.
const char *text_number(char *bytes, uint64_t number);
// Empties the text and keeps its memory.
void text_clear(struct text *text);
void text_free(struct text *text);
// The collected string, now owned by the caller; the text is empty again. Never NULL.
char *text_take(struct text *text);

// malloc family that does not return NULL.
void *base_allocate(size_t size);
void *base_reallocate(void *block, size_t size);
char *base_copy(const char *string);

void *base_grow(void *array, size_t *count, size_t number, size_t size); // for base_reach
// An array of *count elements by number, grown so that it has one of this number; new elements are
// zero. Takes the array, or NULL, and returns it.
static inline void *base_reach(void *array, size_t *count, size_t number, size_t size) {
    return number < *count ? array : base_grow(array, count, number, size);
}

#endif
