#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *must(void *block) {
    if (!block) {
        static const char message[] = "quern: out of memory\n";
        if (write(2, message, sizeof message - 1) < 0)
            _exit(1);
        _exit(1);
    }
    return block;
}

void *base_allocate(size_t size) {
    return must(calloc(1, size ? size : 1));
}

void *base_reallocate(void *block, size_t size) {
    return must(realloc(block, size ? size : 1));
}

char *base_copy(const char *string) {
    return must(strdup(string));
}

void *base_grow(void *array, size_t *count, size_t number, size_t size) {
    size_t room = *count ? *count : 64;
    while (room <= number)
        room *= 2;
    array = base_reallocate(array, room * size);
    memset((char *)array + *count * size, 0, (room - *count) * size);
    *count = room;
    return array;
}

static void make_room(struct text *text, size_t more) {
    size_t need = text->size + more + 1;
    if (need <= text->room)
        return;
    size_t room = text->room ? text->room : 64;
    while (room < need)
        room *= 2;
    text->bytes = base_reallocate(text->bytes, room);
    text->room = room;
}

void text_add(struct text *text, const char *bytes, size_t size) {
    make_room(text, size);
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = 0;
}

void text_string(struct text *text, const char *string) {
    text_add(text, string, strlen(string));
}

void text_char(struct text *text, char c) {
    text_add(text, &c, 1);
}

void text_vformat(struct text *text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (size < 0)
        return;
    make_room(text, (size_t)size);
    vsnprintf(text->bytes + text->size, (size_t)size + 1, format, arguments);
    text->size += (size_t)size;
}

void text_format(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    text_vformat(text, format, arguments);
    va_end(arguments);
}

const char *text_number(char *bytes, uint64_t number) {
    char digits[TEXT_NUMBER_SIZE];
    int count = snprintf(digits, sizeof digits, "%" PRIu64, number);
    char *to = bytes;
    for (int i = 0; i < count; i++) {
        if (i && (count - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return bytes;
}

void text_commas(struct text *text, uint64_t number) {
    char bytes[TEXT_NUMBER_SIZE];
    text_string(text, text_number(bytes, number));
}

void text_clear(struct text *text) {
    text->size = 0;
    if (text->bytes)
        text->bytes[0] = 0;
}

void text_free(struct text *text) {
    free(text->bytes);
    *text = (struct text){0};
}

char *text_take(struct text *text) {
    make_room(text, 0);
    text->bytes[text->size] = 0;
    char *bytes = text->bytes;
    *text = (struct text){0};
    return bytes;
}
