#include "symbols/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"

struct names {
    struct map_texts texts;
};

struct names *names_new(void) {
    return base_allocate(sizeof(struct names));
}

void names_free(struct names *names) {
    if (names)
        map_texts_free(&names->texts);
    free(names);
}

const char *names_keep_part(struct names *names, const char *text, size_t length) {
    bool is_new;
    uint32_t number = map_texts_add(&names->texts, text, length, &is_new);
    return names->texts.keys[number].bytes;
}

const char *names_keep(struct names *names, const char *text) {
    return text ? names_keep_part(names, text, strnlen(text, NAMES_LONGEST)) : NULL;
}
