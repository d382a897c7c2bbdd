#include "tools/shared/supervisor/interpreted.h"

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
    free(interpreted->codes);
    free(interpreted->places);
    map_integers_free(&interpreted->numbers);
    map_integers_free(&interpreted->place_map);
    *interpreted = (struct interpreted){0};
}

static char *copy_part(const uint8_t *bytes, size_t size) {
    char *text = base_allocate(size + 1);
    memcpy(text, bytes, size);
    text[size] = 0;
    return text;
}

void interpreted_add(struct interpreted *interpreted, const struct python_code *code, size_t size) {
    struct python_code head;
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
    *vector_push(interpreted->codes, interpreted->code_count) =
        (struct interpreted_code){.name = copy_part(code->bytes, head.name_size),
                                  .file = copy_part(file, head.file_size),
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

uint64_t interpreted_mark(struct interpreted *interpreted, const struct python_frame *frame) {
    uint32_t number = map_integers_find(&interpreted->numbers, frame->code);
    bool is_new;
    if (number == MAP_NONE || interpreted->place_count >= PLACES_MAX)
        return 0;
    const struct interpreted_code *code = &interpreted->codes[number];
    int32_t line = interpreted_line(code->table, code->table_size, code->first_line, frame->offset);
    uint32_t place =
        map_integers_add(&interpreted->place_map, (uint64_t)number << 32 | (uint32_t)line, &is_new);
    if (is_new)
        *vector_push(interpreted->places, interpreted->place_count) =
            (struct interpreted_place){number, line};
    return INTERPRETED_START + ((uint64_t)place << 1 | (frame->is_entry != 0));
}

const struct interpreted_code *interpreted_find(const struct interpreted *interpreted,
                                                uint64_t mark, int32_t *line) {
    uint64_t number = (mark - INTERPRETED_START) >> 1;
    if (!interpreted_is_mark(mark) || number >= interpreted->place_count)
        return NULL;
    *line = interpreted->places[number].line;
    return &interpreted->codes[interpreted->places[number].code];
}

const char *interpreted_problem(uint32_t state) {
    static const char *const problems[] = {
        [PYTHON_OTHER] = "3.11 to 3.13 are supported",
        [PYTHON_FREE_THREADED] =
            "builds without the global lock\n(free-threaded) are not supported yet",
        [PYTHON_HIDDEN] = "the program does not export\nthe symbols of its interpreter (_PyRuntime "
                          "and others)",
    };
    return state < sizeof problems / sizeof *problems ? problems[state] : NULL;
}

// ---- stacks ------------------------------------------------------------------------------------

// And parts of it: .cold.
bool interpreted_is_interpreter(const char *function) {
    static const char interpreter[] = "_PyEval_EvalFrameDefault";
    return function && strncmp(function, interpreter, sizeof interpreter - 1) == 0;
}

static bool is_entry(uint64_t mark) {
    return mark & 1;
}

static size_t count_entries(const uint64_t *marks, size_t count) {
    size_t entries = 0;
    for (size_t i = 0; i < count; i++)
        entries += is_entry(marks[i]);
    return entries;
}

// The number of marks that one call has run.
static size_t count_run(const uint64_t *marks, size_t count) {
    size_t run = 0;
    while (run < count && !is_entry(marks[run]))
        run++;
    return run + (run < count);
}

size_t interpreted_put(const uint64_t *stack, size_t count, bool is_cut,
                       bool (*is_call)(void *context, uint64_t address), void *context,
                       uint64_t *to) {
    size_t addresses = count, calls = 0, written = 0;
    while (addresses && interpreted_is_mark(stack[addresses - 1]))
        addresses--;
    const uint64_t *marks = &stack[addresses];
    size_t left = count - addresses, entries = count_entries(marks, left), skipped = 0;
    for (size_t i = 0; left && i < addresses; i++)
        calls += is_call(context, stack[i]);
    if (!is_cut && calls < entries)
        left = 0;
    else if (!is_cut)
        skipped = calls - entries;
    for (size_t i = 0; i < addresses; i++) {
        bool runs = left && is_call(context, stack[i]);
        size_t run = runs && !skipped ? count_run(marks, left) : 0;
        skipped -= runs && skipped;
        if (!run)
            to[written++] = stack[i];
        for (size_t j = 0; j < run; j++)
            to[written++] = marks[j] | 1;
        marks += run;
        left -= run;
    }
    return written;
}
