#include "tools/flame/supervisor/interpreted.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"

enum { CODES_MAX = 1 << 18, PLACES_MAX = 1 << 22, UNIT_BYTES = 2 };

void interpreted_free(struct interpreted *interpreted) {
    for (size_t i = 0; i < interpreted->code_count; i++) {
        free(interpreted->codes[i].name);
        free(interpreted->codes[i].file);
        free(interpreted->codes[i].table);
    }
    for (size_t i = 0; i < interpreted->name_count; i++)
        free(interpreted->names[i]);
    free(interpreted->codes);
    free(interpreted->names);
    map_integers_free(&interpreted->numbers);
    map_integers_free(&interpreted->places);
    *interpreted = (struct interpreted){0};
}

static char *copy_part(const uint8_t *bytes, size_t size) {
    char *text = base_allocate(size + 1);
    memcpy(text, bytes, size);
    text[size] = 0;
    return text;
}

void interpreted_add(struct interpreted *interpreted, const struct samples_code *code,
                     size_t size) {
    struct samples_code head;
    bool is_new;
    if (size < sizeof head || interpreted->code_count >= CODES_MAX)
        return;
    memcpy(&head, code, sizeof head);
    size -= sizeof head;
    if (head.name_size > size || head.file_size > size - head.name_size ||
        head.table_size > size - head.name_size - head.file_size || !head.name_size)
        return;
    map_integers_add(&interpreted->numbers, head.code, &is_new);
    if (!is_new)
        return;
    const uint8_t *file = code->bytes + head.name_size, *table = file + head.file_size;
    size_t folder = head.file_size;
    while (folder && file[folder - 1] != '/')
        folder--;
    *vector_push(interpreted->codes, interpreted->code_count) =
        (struct interpreted_code){.name = copy_part(code->bytes, head.name_size),
                                  .file = copy_part(file + folder, head.file_size - folder),
                                  .first_line = head.first_line,
                                  .table = (uint8_t *)copy_part(table, head.table_size),
                                  .table_size = head.table_size};
}

// ---- lines -------------------------------------------------------------------------------------

struct table_reader {
    const uint8_t *at, *end;
};

static uint32_t read_number(struct table_reader *reader) {
    uint32_t number = 0;
    for (unsigned shift = 0; reader->at < reader->end && shift < 30; shift += 6) {
        uint8_t byte = *reader->at++;
        number |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return number;
}

static int32_t read_signed(struct table_reader *reader) {
    uint32_t number = read_number(reader);
    return number & 1 ? -(int32_t)(number >> 1) : (int32_t)(number >> 1);
}

// Each entry is for some instructions that follow those of the one before. Its first byte has the
// kind and the number of units; the line is a difference from the entry before.
int32_t interpreted_line(const uint8_t *table, size_t size, int32_t first_line, int32_t offset) {
    enum { ONE_LINE = 10, NO_COLUMN = 13, LONG = 14, NONE = 15 };
    struct table_reader reader = {table, table + size};
    int64_t line = first_line, known = first_line, end = 0;
    while (reader.at < reader.end && offset >= end) {
        uint8_t first = *reader.at++, kind = first >> 3 & 15;
        end += (int64_t)((first & 7) + 1) * UNIT_BYTES;
        if (kind == NO_COLUMN || kind == LONG)
            line += read_signed(&reader);
        else if (kind >= ONE_LINE && kind < NO_COLUMN)
            line += kind - ONE_LINE;
        if (kind != NONE)
            known = line;
        while (reader.at < reader.end && !(*reader.at & 128))
            reader.at++;
    }
    return known > 0 && known <= INT32_MAX ? (int32_t)known : first_line;
}

// ---- marks -------------------------------------------------------------------------------------

uint64_t interpreted_mark(struct interpreted *interpreted, const struct samples_frame *frame) {
    uint32_t number = map_integers_find(&interpreted->numbers, frame->code);
    bool is_new;
    if (number == MAP_NONE || interpreted->name_count >= PLACES_MAX)
        return 0;
    const struct interpreted_code *code = &interpreted->codes[number];
    int32_t line = interpreted_line(code->table, code->table_size, code->first_line, frame->offset);
    uint32_t place =
        map_integers_add(&interpreted->places, (uint64_t)number << 32 | (uint32_t)line, &is_new);
    if (is_new) {
        struct text text = {0};
        text_format(&text, "%s (%s:%d)", code->name, code->file, line);
        *vector_push(interpreted->names, interpreted->name_count) = text_take(&text);
    }
    return INTERPRETED_START + ((uint64_t)place << 1 | (frame->is_entry != 0));
}

const char *interpreted_name(const struct interpreted *interpreted, uint64_t mark) {
    uint64_t place = (mark - INTERPRETED_START) >> 1;
    return interpreted_is_mark(mark) && place < interpreted->name_count ? interpreted->names[place]
                                                                        : "?";
}
